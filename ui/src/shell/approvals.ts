import { queryOptions } from '@tanstack/react-query';
import { api, data } from '@/api/client';

const PAGE = 50;

/** How many approvals wait, as the badge of the inbox shows it. Undefined when there are none. */
export function pendingApprovals() {
  return queryOptions({
    queryKey: ['approvals', 'count'],
    queryFn: async () => {
      const page = await data(api.GET('/api/v1/approvals', { params: { query: { status: 'pending', limit: PAGE } } }));
      return page.next_cursor ? `${PAGE}+` : page.data.length > 0 ? String(page.data.length) : '';
    },
    refetchInterval: 10_000,
  });
}
