import { duration } from '@/lib/format';
import { useNow } from '@/lib/useNow';

/** How long something took, or has taken so far. It ticks by itself, so that nothing around it is rendered again. */
export function Elapsed({ since, until }: { since: number; until?: number | undefined }) {
  const now = useNow(until === undefined ? 1000 : 0);
  return <span className="tabular">{duration(Math.max(0, (until ?? now) - since))}</span>;
}
