const DATE = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
const SHORT_DATE = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short' });
const COUNT = new Intl.NumberFormat('en-US');
const COMPACT = new Intl.NumberFormat('en-US', { notation: 'compact', maximumFractionDigits: 1 });

export function absolute(date: Date): string {
  return DATE.format(date);
}

/** "just now", "4 min ago", "3 h ago", "2 days ago", then the date. */
export function relative(date: Date, now: number): string {
  const seconds = Math.max(0, (now - date.getTime()) / 1000);
  if (seconds < 45) return 'just now';
  if (seconds < 3600) return `${Math.max(1, Math.round(seconds / 60))} min ago`;
  if (seconds < 86_400) return `${Math.round(seconds / 3600)} h ago`;
  const days = Math.round(seconds / 86_400);
  return days < 8 ? `${days} ${days === 1 ? 'day' : 'days'} ago` : SHORT_DATE.format(date);
}

/** 0.4 s, 12 s, 3 min 5 s. */
export function duration(milliseconds: number): string {
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  const seconds = milliseconds / 1000;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 60 ? `${minutes} min ${Math.round(seconds % 60)} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

export function count(value: number): string {
  return COUNT.format(value);
}

export function compact(value: number): string {
  return value < 10_000 ? COUNT.format(value) : COMPACT.format(value);
}

export function bytes(size: number): string {
  const units = ['B', 'kB', 'MB', 'GB'];
  let value = size;
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit === 0 || value >= 10 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}

/** Money as the ledger knows it: an unknown price is said, never shown as zero; a partly known one is a lower bound. */
export function cost(usage: { cost_known: boolean; cost_usd: string } | undefined): string {
  if (!usage) return '–';
  const usd = Number(usage.cost_usd);
  if (!usage.cost_known && usd === 0) return 'unknown';
  return usage.cost_known ? dollars(usd) : `≥ ${dollars(usd)}`;
}

export function dollars(usd: number): string {
  if (usd === 0) return '$0';
  if (usd < 0.0001) return '< $0.0001';
  return usd < 0.01 ? `$${usd.toFixed(4)}` : `$${usd.toFixed(2)}`;
}
