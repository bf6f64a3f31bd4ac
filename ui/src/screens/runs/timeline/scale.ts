/** The part of time that the timeline covers, in milliseconds since 1970. */
export interface Domain { start: number; end: number }

const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000, 1_200_000, 1_800_000, 3_600_000, 7_200_000, 14_400_000, 28_800_000, 86_400_000];
const LIVE_STEPS = [5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 240, 300, 450, 600, 900, 1_200, 1_800, 2_700, 3_600].map((seconds) => seconds * 1000);

export const MAX_ZOOM = 200;

/** From when the run was created until it ended. While it runs the end is ahead of now, and moves in steps: bars keep their places. */
export function domainOf(run: { created_at: string; finished_at?: string | undefined }, now: number): Domain {
  const start = Date.parse(run.created_at);
  if (run.finished_at) return { start, end: Math.max(start + 1, Date.parse(run.finished_at)) };
  const elapsed = Math.max(0, now - start) * 1.05;
  const step = LIVE_STEPS.find((length) => length >= elapsed);
  return { start, end: start + (step ?? Math.ceil(elapsed / 1_800_000) * 1_800_000) };
}

/** Where a time is, in percent of the width. */
export function percent({ start, end }: Domain, time: number): number {
  return Math.min(100, Math.max(0, (100 * (time - start)) / (end - start)));
}

/** Round distances from the start, about `count` of them. */
export function ticks({ start, end }: Domain, count: number): number[] {
  const length = end - start;
  const wanted = length / Math.max(1, count);
  const step = STEPS.find((candidate) => candidate >= wanted) ?? Math.ceil(wanted / 86_400_000) * 86_400_000;
  return Array.from({ length: Math.floor(length / step) + 1 }, (_, at) => at * step);
}

/** The magnification that the ticks are made for: they change when it doubles, not with every turn of the wheel. */
export function tickZoom(zoom: number): number {
  return 2 ** Math.floor(Math.log2(zoom) + 0.001);
}

/** `0`, `250 ms`, `1.5 s`, `2 min`, `1:30 min`, `1 h`. */
export function tickLabel(offset: number): string {
  if (offset === 0) return '0';
  if (offset < 1_000) return `${offset} ms`;
  if (offset < 60_000) return `${Number((offset / 1_000).toFixed(1))} s`;
  const minutes = Math.floor(offset / 60_000);
  const seconds = Math.round((offset % 60_000) / 1_000);
  if (minutes < 60) return seconds ? `${minutes}:${String(seconds).padStart(2, '0')} min` : `${minutes} min`;
  return minutes % 60 ? `${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, '0')} h` : `${minutes / 60} h`;
}

/** How far the content is magnified, and how far it is scrolled, in pixels. */
export interface View { zoom: number; left: number }

/** Magnifies around a point (pixels from the left edge of what is visible), which stays where it is. */
export function zoomAt({ zoom, left }: View, factor: number, anchor: number, width: number): View {
  const next = Math.min(MAX_ZOOM, Math.max(1, zoom * factor));
  const scale = next / zoom;
  return { zoom: next, left: clamp((left + anchor) * scale - anchor, width * next - width) };
}

/** Shows exactly what lies between two points of the content, given as fractions of it. */
export function zoomTo(from: number, to: number, width: number): View {
  const zoom = Math.min(MAX_ZOOM, Math.max(1, 1 / Math.max(0.0001, to - from)));
  return { zoom, left: clamp(((from + to) / 2) * width * zoom - width / 2, width * zoom - width) };
}

function clamp(value: number, max: number): number {
  return Math.min(Math.max(0, max), Math.max(0, value));
}
