import { describe, expect, it } from 'vitest';
import { session } from '../fixtures';
import { flatten, treeKey } from './flatten';

const tree = [session('a', 0, 9, { sessions: [session('b', 1, 4, { sessions: [session('c', 2, 3)] }), session('d', 1, 5)] })];
const open = new Set<string>();

describe('flatten', () => {
  it('lists parents before children with their places', () => {
    const rows = flatten(tree);
    expect(rows.map(({ id, depth, position, siblings }) => [id, depth, position, siblings])).toEqual([['a', 0, 1, 1], ['b', 1, 1, 2], ['c', 2, 1, 1], ['d', 1, 2, 2]]);
    expect(rows.map((row) => row.parent)).toEqual([undefined, 'a', 'b', 'a']);
  });

  it('leaves out what is below a collapsed session', () => {
    expect(flatten(tree, new Set(['b'])).map((row) => row.id)).toEqual(['a', 'b', 'd']);
    expect(flatten([])).toEqual([]);
  });
});

describe('treeKey', () => {
  const rows = flatten(tree);
  it('moves up and down and to the ends', () => {
    expect(treeKey('ArrowDown', rows, 'a', open)).toEqual({ focus: 'b' });
    expect(treeKey('ArrowUp', rows, 'a', open)).toBeUndefined();
    expect(treeKey('End', rows, 'a', open)).toEqual({ focus: 'd' });
    expect(treeKey('Home', rows, 'd', open)).toEqual({ focus: 'a' });
  });

  it('opens, closes and goes to the parent', () => {
    expect(treeKey('ArrowLeft', rows, 'b', open)).toEqual({ toggle: 'b' });
    expect(treeKey('ArrowRight', rows, 'b', open)).toEqual({ focus: 'c' });
    expect(treeKey('ArrowLeft', rows, 'c', open)).toEqual({ focus: 'b' });
    const closed = new Set(['b']);
    expect(treeKey('ArrowRight', flatten(tree, closed), 'b', closed)).toEqual({ toggle: 'b' });
    expect(treeKey('ArrowRight', rows, 'd', open)).toBeUndefined();
  });
});
