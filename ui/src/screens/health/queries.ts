import { queryOptions } from '@tanstack/react-query';
import { api, data } from '@/api/client';
import { queries } from '@/api/queries';

const REFRESH = 10_000;

export const healthQueries = {
  system: () => queryOptions({ ...queries.system(), refetchInterval: REFRESH }),
  roster: () => queryOptions({ ...queries.roster(), refetchInterval: REFRESH }),
  /** Needs no permission, and answers 503 while the server is not ready. */
  readiness: () => queryOptions({ queryKey: ['readiness'], queryFn: () => data(api.GET('/readyz', { params: { query: { verbose: '' } } })), refetchInterval: REFRESH, retry: false }),
};
