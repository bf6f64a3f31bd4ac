import type { Run, Usage } from '@/api/types';

/** How long a run or session took, or has taken until now. */
export function elapsed({ started_at, created_at, finished_at }: { started_at?: string | undefined; created_at?: string; finished_at?: string | undefined }, now: number): number | undefined {
  const start = started_at ?? (finished_at ? created_at : undefined);
  if (!start) return undefined;
  return Math.max(0, (finished_at ? Date.parse(finished_at) : now) - Date.parse(start));
}

export function tokens({ input_tokens, output_tokens }: Usage): number {
  return input_tokens + output_tokens;
}

/** The first block of an id is enough to tell runs and conversations apart on a page. */
export function shortId(id: string): string {
  return id.length > 12 ? `${id.slice(0, 8)}…${id.slice(-4)}` : id;
}

export function isOwn(run: Run, userId: string | undefined): boolean {
  return run.user_id === userId;
}
