import { describe, expect, it } from 'vitest';
import { rowsOf } from './rowsOf';

describe('rowsOf', () => {
  it('lists plain values by name', () => {
    expect(rowsOf({ path: '/a', force: false, count: 0, note: null })).toEqual([['path', '/a'], ['force', 'false'], ['count', '0'], ['note', 'null']]);
  });

  it('has no rows without arguments', () => {
    expect(rowsOf(undefined)).toEqual([]);
    expect(rowsOf({})).toEqual([]);
  });

  it('leaves nested values, lists and texts to JSON', () => {
    expect(rowsOf({ filter: { id: 1 } })).toBeUndefined();
    expect(rowsOf(['a'])).toBeUndefined();
    expect(rowsOf('text')).toBeUndefined();
  });
});
