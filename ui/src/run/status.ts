import type { RunStatus } from '@/api/types';

/** Whether a run or session has ended. `waiting` has not: it continues after a decision. */
export function isOver(status: RunStatus): boolean {
  return status !== 'queued' && status !== 'running' && status !== 'waiting';
}
