import type { Run } from '@/api/types';

/** How long a run or session took, or has taken until now. */
export function elapsed({ started_at, created_at, finished_at }: { started_at?: string | undefined; created_at?: string; finished_at?: string | undefined }, now: number): number | undefined {
  const start = started_at ?? (finished_at ? created_at : undefined);
  if (!start) return undefined;
  return Math.max(0, (finished_at ? Date.parse(finished_at) : now) - Date.parse(start));
}

export function isOwn(run: Run, userId: string | undefined): boolean {
  return run.user_id === userId;
}
