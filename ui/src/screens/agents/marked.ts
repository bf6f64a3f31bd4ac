import type { Schemas } from '@/api/client';

/** A source line in three parts: before, inside and after the place. Columns count from 1; the end is exclusive. */
export function marked(text: string, line: number, place: Pick<Schemas['PlaceView'], 'line' | 'column' | 'end_line' | 'end_column'>): [string, string, string] {
  if (line < place.line || line > place.end_line) return [text, '', ''];
  const characters = [...text];
  const start = line === place.line ? place.column - 1 : 0;
  const end = line === place.end_line ? Math.max(place.end_column - 1, line === place.line ? place.column : 0) : characters.length;
  const join = (from: number, to?: number) => characters.slice(from, to).join('');
  return [join(0, start), join(start, end), join(end)];
}
