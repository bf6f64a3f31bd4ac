import { expect, test, vi } from 'vitest';
import { Problem } from '@/api/problem';
import { toJsonl } from '@/lib/jsonl';
import { periodOf, placeOf, queryOf, sinceOf, toneOf, type Entry } from './data';
import { MOST_ROWS, readAll, toCsv } from './exportAll';

const NOW = Date.parse('2026-11-16T17:14:31Z');
const entry = (number: number): Entry => ({ chain: 3, number, at: '2026-11-16T17:14:11Z', tenant_id: 'default', actor: 'ada', action: 'run.start', decision: 'allowed', hash: 'abc', detail: { agent: 'assistant' } });
const signal = () => new AbortController().signal;

test('a period becomes a moment, a moment stays', () => {
  expect(sinceOf(null, NOW)).toBe('2026-11-15T17:14:00.000Z');
  expect(sinceOf('7d', NOW)).toBe('2026-11-09T17:14:00.000Z');
  expect(sinceOf('all', NOW)).toBeUndefined();
  expect(sinceOf('2026-01-02T03:04:05Z', NOW)).toBe('2026-01-02T03:04:05.000Z');
  expect([periodOf('nonsense'), periodOf('2026-01-02')]).toEqual(['24h', undefined]);
});

test('an entry is named by its chain and number', () => {
  expect(placeOf(entry(7))).toBe('3.7');
});

test('empty filters are not sent', () => {
  expect(queryOf({ actor: 'ada', action: undefined, thread_id: '' })).toEqual({ actor: 'ada' });
});

test('decisions have a tone', () => {
  expect(['allowed', 'denied', 'cancelled', 'something_new'].map(toneOf)).toEqual(['success', 'danger', 'warning', 'neutral']);
});

test('an export follows every page', async () => {
  const load = vi.fn(async (_: unknown, cursor: string | undefined) => (cursor ? { data: [entry(2)], next_cursor: null } : { data: [entry(1)], next_cursor: '1' }));
  const onProgress = vi.fn();
  const { entries, isCut } = await readAll({ filter: {}, signal: signal(), onProgress, load });
  expect(entries.map((one) => one.number)).toEqual([1, 2]);
  expect(isCut).toBe(false);
  expect(onProgress.mock.calls).toEqual([[1], [2]]);
});

test('an export stops at the limit and says so', async () => {
  const pageOf = Array.from({ length: 30_000 }, (_, at) => entry(at));
  const { entries, isCut } = await readAll({ filter: {}, signal: signal(), onProgress: () => undefined, load: async () => ({ data: pageOf, next_cursor: 'more' }) });
  expect(entries).toHaveLength(MOST_ROWS);
  expect(isCut).toBe(true);
});

test('an export waits when there are too many requests', async () => {
  const wait = vi.fn(async () => undefined);
  const load = vi.fn().mockRejectedValueOnce(new Problem(429, 'rate_limited', 'slow down')).mockResolvedValueOnce({ data: [entry(1)] });
  expect((await readAll({ filter: {}, signal: signal(), onProgress: () => undefined, load, wait })).entries).toHaveLength(1);
  expect(wait).toHaveBeenCalledWith(1000);
});

test('files hold one entry per line', () => {
  expect(toJsonl([entry(1), entry(2)]).trimEnd().split('\n').map((line) => JSON.parse(line).number)).toEqual([1, 2]);
  expect(toCsv([entry(1)]).split('\r\n')[1]).toBe('3,1,2026-11-16T17:14:11Z,default,ada,,run.start,allowed,,,,"{""agent"":""assistant""}",abc');
});
