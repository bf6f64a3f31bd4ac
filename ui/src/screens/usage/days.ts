import { DAY, total, type Line } from './data';

export interface Bucket { key: string; label: string; title: string; line: Line }

const UTC = { timeZone: 'UTC' } as const;
const DAY_LABEL = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', ...UTC });
const DAY_TITLE = new Intl.DateTimeFormat('en-GB', { weekday: 'long', day: 'numeric', month: 'long', year: 'numeric', ...UTC });
const MONTH_LABEL = new Intl.DateTimeFormat('en-GB', { month: 'short', year: '2-digit', ...UTC });

/** More bars than this would be too narrow. */
const MOST_BARS = 62;

/** Days without use are bars of zero, not gaps; long spans are added up by week, then by month. */
export function buckets(lines: Line[], since: string | undefined, now: number): Bucket[] {
  const times = lines.map((line) => Date.parse(line.key)).filter(Number.isFinite);
  const from = since ? floorDay(Date.parse(since)) : floorDay(Math.min(now, ...times));
  const to = floorDay(Math.max(now, ...times));
  const days = Math.round((to - from) / DAY) + 1;
  if (days <= MOST_BARS) return group(lines, from, to, dayStart, (at) => [DAY_LABEL.format(at), DAY_TITLE.format(at)]);
  if (days <= MOST_BARS * 7) return group(lines, from, to, weekStart, (at) => [DAY_LABEL.format(at), `Week of ${DAY_LABEL.format(at)}`]);
  return group(lines, from, to, monthStart, (at) => [MONTH_LABEL.format(at), MONTH_LABEL.format(at)]);
}

function group(lines: Line[], from: number, to: number, startOf: (at: number) => number, names: (at: number) => [string, string]): Bucket[] {
  const parts = new Map<number, Line[]>();
  for (let at = from; at <= to; at += DAY) parts.set(startOf(at), []);
  for (const line of lines) parts.get(startOf(Date.parse(line.key)))?.push(line);
  return [...parts].map(([at, inside]) => {
    const [label, title] = names(at);
    return { key: String(at), label, title, line: total(inside, title) };
  });
}

function floorDay(at: number): number {
  return Math.floor(at / DAY) * DAY;
}

const dayStart = floorDay;

/** Weeks begin on Monday; 1 January 1970 was a Thursday. */
function weekStart(at: number): number {
  const day = Math.floor(at / DAY);
  return (day - ((day + 3) % 7)) * DAY;
}

function monthStart(at: number): number {
  const date = new Date(at);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1);
}

/** The time that one bar covers. */
export function unitOf(buckets: Bucket[]): 'day' | 'week' | 'month' {
  const [first, second] = buckets;
  const days = first && second ? (Number(second.key) - Number(first.key)) / DAY : 1;
  return days > 7 ? 'month' : days > 1 ? 'week' : 'day';
}

/** Round numbers from zero to at least `most`, for the axis. */
export function ticks(most: number, steps = 3): number[] {
  if (most <= 0) return [0];
  const rough = most / steps;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= rough * 0.999) ?? rough;
  return Array.from({ length: Math.ceil(most / step - 0.001) + 1 }, (_, at) => at * step);
}
