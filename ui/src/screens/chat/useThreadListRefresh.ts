import { useQueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import type { ThreadState } from '@/thread/state';

/** The sidebar shows who has the thread and whether it is running, so it is read again when that changes. */
export function useThreadListRefresh({ activeRun, handoff, progress }: ThreadState): void {
  const client = useQueryClient();
  useEffect(() => void client.invalidateQueries({ queryKey: ['threads'] }), [client, activeRun, handoff?.phase, handoff?.to, progress?.step]);
}
