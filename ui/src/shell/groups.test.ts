import { describe, expect, it } from 'vitest';
import type { Thread } from '@/api/types';
import { groupByDay } from './groups';

const at = (updated: Date) => ({ thread_id: updated.toISOString(), updated_at: updated.toISOString() }) as Thread;
const now = new Date(2026, 4, 20, 9, 30);

describe('groupByDay', () => {
  it('groups by local calendar days, not by hours passed', () => {
    const groups = groupByDay([at(new Date(2026, 4, 20, 0, 0)), at(new Date(2026, 4, 19, 23, 59)), at(new Date(2026, 4, 19, 0, 0)), at(new Date(2026, 4, 18, 23, 59))], now.getTime());
    expect(groups.map(({ title, threads }) => [title, threads.length])).toEqual([['Today', 1], ['Yesterday', 2], ['Previous 7 days', 1]]);
  });

  it('ends the week after seven days', () => {
    const groups = groupByDay([at(new Date(2026, 4, 13, 0, 0)), at(new Date(2026, 4, 12, 23, 59))], now.getTime());
    expect(groups.map(({ title }) => title)).toEqual(['Previous 7 days', 'Older']);
  });

  it('counts a thread from a clock that is ahead as today', () => {
    expect(groupByDay([at(new Date(2026, 4, 21, 12, 0))], now.getTime())[0]?.title).toBe('Today');
  });

  it('has no empty groups', () => {
    expect(groupByDay([], now.getTime())).toEqual([]);
  });
});
