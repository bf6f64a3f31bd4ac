import { describe, expect, it } from 'vitest';
import type { Entry } from './entries';
import { blocksOf, isSameBlock } from './blocks';

const message = (number: number | undefined, key = `m${number}`): Entry =>
  ({ kind: 'message', key, item: { kind: 'message', id: key, role: 'user', text: '', attachments: [], at: 0, status: 'done', number }, isQueued: false, closesRun: false });
const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, at) => message(from + at));

describe('blocksOf', () => {
  it('keeps its cuts when older and newer messages come', () => {
    const keys = (entries: Entry[]) => blocksOf(entries).map(({ key }) => key);
    expect(keys(range(50, 90))).toEqual(['2', '3', '4']);
    expect(keys(range(1, 110))).toEqual(['0', '1', '2', '3', '4', '5']);
  });

  it('leaves rows without a number with those before them', () => {
    expect(blocksOf([...range(18, 19), message(undefined, 'new'), message(20)]).map(({ entries }) => entries.length)).toEqual([3, 1]);
  });

  it('compares what is shown', () => {
    const [one, other] = [range(1, 3), range(1, 3)];
    expect(isSameBlock({ key: '0', entries: one }, { key: '0', entries: one.map((entry) => ({ ...entry })) })).toBe(true);
    expect(isSameBlock({ key: '0', entries: one }, { key: '0', entries: other })).toBe(false);
  });
});
