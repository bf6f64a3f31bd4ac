import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef } from 'react';
import type { ThreadState } from '@/thread/state';

/** The sidebar shows who has the thread and whether it is running, so it is read again when that changes. */
export function useThreadListRefresh({ activeRun, handoff, progress }: ThreadState): void {
  const client = useQueryClient();
  useEffect(() => void client.invalidateQueries({ queryKey: ['threads'] }), [client, activeRun, handoff?.phase, handoff?.to, progress?.step]);
}

/** What this conversation asks, and what became of it, changes the inbox and its count at once. */
export function useInboxRefresh(state: ThreadState): void {
  const queryClient = useQueryClient();
  const requests = state.items.flatMap((item) => (item.kind === 'request' ? [`${item.id}:${item.approval.status}`] : [])).join();
  const before = useRef(requests);
  useEffect(() => {
    if (before.current === requests) return;
    before.current = requests;
    void queryClient.invalidateQueries({ queryKey: ['approvals'] });
  }, [requests, queryClient]);
}
