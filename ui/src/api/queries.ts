import { QueryClient, queryOptions } from '@tanstack/react-query';
import { api, data } from './client';
import { Problem } from './problem';

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      // A refusal does not change by asking again.
      retry: (failures, error) => failures < 2 && !(error instanceof Problem && error.status < 500),
      refetchOnWindowFocus: true,
    },
  },
});

/** Queries of several screens. Those of one screen are in its folder, those of runs in `run/`. */
export const queries = {
  me: () => queryOptions({ queryKey: ['me'], queryFn: () => data(api.GET('/api/v1/me')), staleTime: 60_000 }),
  system: () => queryOptions({ queryKey: ['system'], queryFn: () => data(api.GET('/api/v1/system')), staleTime: 15_000 }),
  agents: () => queryOptions({ queryKey: ['agents'], queryFn: allAgents, staleTime: 15_000 }),
  resumable: () => queryOptions({ queryKey: ['resumable'], queryFn: () => data(api.GET('/api/v1/handoffs/resumable')) }),
  roster: () => queryOptions({ queryKey: ['roster'], queryFn: () => data(api.GET('/api/v1/roster')), refetchInterval: 5_000 }),
};

/** Every agent, hidden ones too, page by page. */
async function allAgents() {
  const agents = [];
  for (let cursor: string | undefined; ; ) {
    const query = { limit: 200, all: true, ...(cursor ? { cursor } : {}) };
    const page = await data(api.GET('/api/v1/agents', { params: { query } }));
    agents.push(...page.data);
    if (!page.next_cursor) return agents;
    cursor = page.next_cursor;
  }
}
