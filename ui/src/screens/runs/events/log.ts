import type { AguiEvent } from '@/api/events';

/** One event as it came, with its place in the log. */
export interface Entry { number: number; event: AguiEvent }

/** How many of the last events are shown until all are asked for. */
export const TAIL = 500;

export function typeOf(event: AguiEvent): string {
  return event.type === 'CUSTOM' ? `CUSTOM ${event.name}` : event.type === 'ACTIVITY_SNAPSHOT' ? `ACTIVITY ${event.activityType}` : event.type;
}

/** The types that occur, with their numbers, the most frequent first. */
export function countTypes(entries: Entry[]): [string, number][] {
  const counts = new Map<string, number>();
  for (const { event } of entries) counts.set(typeOf(event), (counts.get(typeOf(event)) ?? 0) + 1);
  return [...counts].sort((one, other) => other[1] - one[1] || one[0].localeCompare(other[0]));
}

export function filterEntries(entries: Entry[], type: string, text: string): Entry[] {
  const words = text.trim().toLowerCase();
  if (!type && !words) return entries;
  return entries.filter(({ event }) => (!type || typeOf(event) === type) && (!words || JSON.stringify(event).toLowerCase().includes(words)));
}

/** A line that says what the event is about. */
export function summary(event: AguiEvent): string {
  const fields = event as unknown as Record<string, unknown>;
  const field = ['delta', 'message', 'name', 'toolCallName', 'content', 'description', 'value', 'snapshot', 'outcome'].map((name) => fields[name]).find((value) => value !== undefined);
  const text = typeof field === 'string' ? field : field === undefined ? '' : JSON.stringify(field);
  return text.length > 160 ? `${text.slice(0, 160)}…` : text;
}
