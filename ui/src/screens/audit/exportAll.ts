import { Problem } from '@/api/problem';
import { csv } from '@/lib/csv';
import { page, type Entry, type Filter } from './data';

/** More rows are not kept in a browser's memory. */
export const MOST_ROWS = 50_000;
const PAGE = 200;
const MOST_RETRIES = 5;

interface ExportOptions { filter: Filter; signal: AbortSignal; onProgress: (rows: number) => void; load?: typeof page; wait?: (milliseconds: number) => Promise<void> }

/** All entries of a filter, page by page. `isCut` when the limit was reached before the end. */
export async function readAll({ filter, signal, onProgress, load = page, wait = pause }: ExportOptions): Promise<{ entries: Entry[]; isCut: boolean }> {
  const entries: Entry[] = [];
  let cursor: string | undefined;
  do {
    const next = await withRetries(() => load(filter, cursor, PAGE, signal), signal, wait);
    entries.push(...next.data.slice(0, MOST_ROWS - entries.length));
    onProgress(entries.length);
    cursor = next.next_cursor ?? undefined;
  } while (cursor && entries.length < MOST_ROWS);
  return { entries, isCut: cursor !== undefined };
}

/** A long export may exceed the rate limit (429): waits and tries again, up to five times. */
async function withRetries<T>(call: () => Promise<T>, signal: AbortSignal, wait: (milliseconds: number) => Promise<void>): Promise<T> {
  for (let retries = 0; ; retries += 1) {
    signal.throwIfAborted();
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof Problem) || error.status !== 429 || retries >= MOST_RETRIES) throw error;
      await wait(1000 * 2 ** retries);
    }
  }
}

function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

const COLUMNS = ['chain', 'number', 'at', 'tenant_id', 'actor', 'on_behalf_of', 'action', 'decision', 'thread_id', 'run_id', 'trace_id', 'detail', 'hash'] as const;

/** The entries as CSV. */
export function toCsv(entries: Entry[]): string {
  const cell = (value: unknown) => (value === undefined || value === null ? undefined : typeof value === 'object' ? JSON.stringify(value) : (value as string | number));
  return csv([...COLUMNS], entries.map((entry) => COLUMNS.map((name) => cell(entry[name]))));
}
