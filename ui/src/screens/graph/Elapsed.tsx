import { duration } from '@/lib/format';
import { useNow } from '@/lib/useNow';

/** How long something has been running; ticks by itself, so that nothing around it is drawn again. */
export function Elapsed({ since }: { since: number }) {
  const now = useNow(1000);
  return <span className="tabular">{duration(Math.max(0, now - since))}</span>;
}
