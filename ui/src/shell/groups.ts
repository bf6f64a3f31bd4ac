import type { Thread } from '@/api/types';

export interface ThreadGroup { title: string; threads: Thread[] }

const DAY = 86_400_000;

/** Threads by the local day of their last change, the newest first. Empty groups are left out. */
export function groupByDay(threads: Thread[], now: number): ThreadGroup[] {
  const midnight = new Date(now).setHours(0, 0, 0, 0);
  // A day with a clock change has 23 or 25 hours: half a day before midnight is yesterday in any case.
  const yesterday = new Date(midnight - DAY / 2).setHours(0, 0, 0, 0);
  const lastWeek = new Date(midnight - 6.5 * DAY).setHours(0, 0, 0, 0);
  const groups: (ThreadGroup & { since: number })[] = [
    { title: 'Today', since: midnight, threads: [] },
    { title: 'Yesterday', since: yesterday, threads: [] },
    { title: 'Previous 7 days', since: lastWeek, threads: [] },
    { title: 'Older', since: -Infinity, threads: [] },
  ];
  for (const thread of threads) {
    const at = Date.parse(thread.updated_at);
    groups.find((group) => at >= group.since)?.threads.push(thread);
  }
  return groups.filter((group) => group.threads.length > 0).map(({ title, threads }) => ({ title, threads }));
}
