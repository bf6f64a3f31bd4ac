import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import { api, data } from '@/api/client';
import type { Run } from '@/api/types';
import { isOver } from '@/run/status';
import { sinceDate, type Filters } from './list/filters';

const PAGE = 50;
const LIST_INTERVAL = 5_000;
const RUN_INTERVAL = 2_000;

export const runQueries = {
  list: ({ status, agent, user, thread, since }: Filters) =>
    infiniteQueryOptions({
      queryKey: ['runs', { status, agent, user, thread, since }],
      queryFn: ({ pageParam }) => {
        const from = sinceDate(since, Date.now());
        const query = {
          limit: PAGE,
          ...(status && { status }),
          ...(agent && { agent }),
          ...(user && { user_id: user }),
          ...(thread && { thread_id: thread }),
          ...(from && { since: from }),
          ...(pageParam && { cursor: pageParam }),
        };
        return data(api.GET('/api/v1/runs', { params: { query } }));
      },
      initialPageParam: '',
      getNextPageParam: (page) => page.next_cursor ?? undefined,
      // Later pages stay as they are: they are old, and a refresh would load all of them.
      refetchInterval: ({ state }) => (state.data?.pages.length === 1 && hasActive(state.data.pages[0]?.data ?? []) ? LIST_INTERVAL : false),
    }),

  /** `over` is part of the key: what was recorded last is read once more when the run has ended. */
  steps: (runId: string, over: boolean) =>
    queryOptions({
      queryKey: ['run', runId, 'steps', over],
      queryFn: () => data(api.GET('/api/v1/runs/{run_id}/steps', { params: { path: { run_id: runId } } })),
      refetchInterval: over ? false : RUN_INTERVAL,
      staleTime: over ? Infinity : 0,
      placeholderData: (previous) => previous,
    }),

  prompt: (agent: string, threadId: string) =>
    queryOptions({
      queryKey: ['agent', agent, 'prompt', threadId],
      queryFn: () => data(api.GET('/api/v1/agents/{agent}/prompt', { params: { path: { agent }, query: { thread_id: threadId } } })),
      staleTime: 60_000,
    }),

  /** Titles of the newest conversations; runs of older ones are shown with the id. */
  titles: () =>
    queryOptions({
      queryKey: ['threads', 'titles'],
      queryFn: () => data(api.GET('/api/v1/threads', { params: { query: { limit: 200 } } })),
      select: (page) => new Map(page.data.map((thread) => [thread.thread_id, thread.title])),
      staleTime: 30_000,
    }),

  /** The messages of a conversation around a run: its task is one of them. */
  messages: (threadId: string) =>
    queryOptions({
      queryKey: ['threads', threadId, 'messages', 'task'],
      queryFn: () => data(api.GET('/api/v1/threads/{thread_id}/messages', { params: { path: { thread_id: threadId }, query: { limit: 200 } } })),
      staleTime: 60_000,
    }),
};

export function hasActive(runs: Run[]): boolean {
  return runs.some((run) => !isOver(run.status));
}
