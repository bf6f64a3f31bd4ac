import { expect, it } from 'vitest';
import { marked } from './marked';

const place = { line: 3, column: 10, end_line: 3, end_column: 17 };

it('splits the offending line at its columns', () => {
  expect(marked('agents: [reserch]', 3, place)).toEqual(['agents: [', 'reserch', ']']);
});

it('leaves other lines whole', () => {
  expect(marked('name: a', 2, place)).toEqual(['name: a', '', '']);
});

it('marks one character where the place is empty', () => {
  expect(marked('abc', 3, { ...place, column: 2, end_column: 2 })).toEqual(['a', 'b', 'c']);
});

it('marks whole lines in the middle of a place', () => {
  expect(marked('abc', 4, { ...place, end_line: 5, end_column: 2 })).toEqual(['', 'abc', '']);
  expect(marked('abc', 5, { ...place, end_line: 5, end_column: 2 })).toEqual(['', 'a', 'bc']);
});

it('counts characters, not UTF-16 units', () => {
  expect(marked('🙂ab', 3, { ...place, column: 2, end_column: 3 })).toEqual(['🙂', 'a', 'b']);
});
