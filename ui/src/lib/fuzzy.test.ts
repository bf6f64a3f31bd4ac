import { describe, expect, it } from 'vitest';
import { fuzzyFilter, fuzzyMatch } from './fuzzy';

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
});

describe('fuzzyFilter', () => {
  const filter = (query: string, ...texts: string[]) => fuzzyFilter(texts, query, (text) => text);

  it('puts beginnings of words before parts of words', () => {
    expect(filter('age', 'Usage', 'Agents')).toEqual(['Agents', 'Usage']);
  });

  it('puts connected matches before scattered ones', () => {
    expect(filter('skil', 'Switch kindly in light', 'Open skills')).toEqual(['Open skills', 'Switch kindly in light']);
  });

  it('keeps the order with an empty query and of equal matches', () => {
    expect(filter('', 'b', 'a')).toEqual(['b', 'a']);
    expect(filter('x', 'x1', 'x2')).toEqual(['x1', 'x2']);
  });
});
