import { queryOptions } from '@tanstack/react-query';
import { api, data } from '@/api/client';
import { isOver } from './status';

const INTERVAL = 2_000;

/** A run with its sessions, read again until it has ended. */
export function runQuery(runId: string) {
  return queryOptions({
    queryKey: ['run', runId],
    queryFn: () => data(api.GET('/api/v1/runs/{run_id}', { params: { path: { run_id: runId } } })),
    refetchInterval: ({ state }) => (state.data && !isOver(state.data.status) ? INTERVAL : false),
  });
}

/** `stop` lets the agents finish with what they have; `abort` ends them at once. */
export function cancelRun(runId: string, mode: 'stop' | 'abort') {
  return data(api.POST('/api/v1/runs/{run_id}/cancel', { params: { path: { run_id: runId } }, body: { mode } }));
}
