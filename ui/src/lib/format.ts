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
  return days < 8 ? `${plural(days, 'day')} ago` : SHORT_DATE.format(date);
}

/** `400 ms`, `1.5 s`, `12 s`, `3 min 5 s`, `2 h 10 min`; from two days on `3 days 4 h`. */
export function duration(milliseconds: number): string {
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  if (milliseconds < 9_950) return `${(milliseconds / 1000).toFixed(1)} s`;
  const seconds = Math.round(milliseconds / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} days ${hours % 24} h`;
}

export function count(value: number): string {
  return COUNT.format(value);
}

/** `plural(1, 'run')` is "1 run", `plural(1200, 'entry', 'entries')` is "1,200 entries". */
export function plural(value: number, one: string, many = `${one}s`): string {
  return `${COUNT.format(value)} ${value === 1 ? one : many}`;
}

/** Large numbers in short: 9,999, then 10K. */
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

/** Input and output tokens together. */
export function tokens({ input_tokens, output_tokens }: { input_tokens: number; output_tokens: number }): number {
  return input_tokens + output_tokens;
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

export function capitalize(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** The beginning and the end of a UUID: those that are created at the same time begin alike. */
export function shortId(id: string): string {
  return id.length > 12 ? `${id.slice(0, 8)}…${id.slice(-4)}` : id;
}
