import { describe, expect, it } from 'vitest';
import { fuzzyMatch } from './fuzzy';

describe('fuzzyMatch', () => {
  it('matches characters in order, whatever their case', () => {
    expect(fuzzyMatch('NWC', 'New conversation')?.positions).toEqual([0, 2, 4]);
    expect(fuzzyMatch('cwn', 'New conversation')).toBeUndefined();
  });

  it('ignores spaces in the query', () => {
    expect(fuzzyMatch('new conv', 'New conversation')).toBeDefined();
  });

  it('matches everything with an empty query', () => {
    expect(fuzzyMatch('', 'Runs')).toEqual({ score: 0, positions: [] });
  });

  it('finds the best place, not the first', () => {
    expect(fuzzyMatch('cost', 'Record costs')?.positions).toEqual([7, 8, 9, 10]);
  });

  it('does not fail on characters outside the basic plane', () => {
    expect(fuzzyMatch('🛠', 'Tools 🛠')).toBeDefined();
  });

  it.each([
    ['beginnings of words before parts of words', 'age', 'Agents', 'Usage'],
    ['connected matches before scattered ones', 'skil', 'Open skills', 'Switch kindly in light'],
  ])('puts %s', (_, query, better, worse) => {
    expect(fuzzyMatch(query, better)!.score).toBeGreaterThan(fuzzyMatch(query, worse)!.score);
  });
});
