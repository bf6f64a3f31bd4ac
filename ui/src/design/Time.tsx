import { absolute, relative } from '@/lib/format';
import { useNow } from '@/lib/useNow';

/** Relative time, the absolute one in the tooltip. */
export function Time({ at }: { at: string | number }) {
  const now = useNow(30_000);
  const date = new Date(at);
  return <time dateTime={date.toISOString()} title={absolute(date)}>{relative(date, now)}</time>;
}
