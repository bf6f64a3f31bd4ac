import { expect, it } from 'vitest';
import { facts, inline, jumps, words } from './definition';

it('writes keys as words', () => {
  expect(words('gathering_requirements')).toBe('Gathering requirements');
});

it('writes values in one line', () => {
  expect([inline([]), inline(['a', 'b']), inline(false), inline(null), inline({ a: 1 })]).toEqual(['none', 'a, b', 'no', '–', '{"a":1}']);
});

it('turns a map into facts', () => {
  expect(facts({ max_turns: 12, timeout: '5m' })).toEqual([['Max turns', '12'], ['Timeout', '5m']]);
  expect(facts(undefined)).toEqual([]);
});

it('names only steps that are not the next one', () => {
  const states = [{ name: 'a', next: ['b'] }, { name: 'b', next: ['c', 'a'] }, { name: 'c', next: [] }];
  expect(states.map((_, at) => jumps(states, at))).toEqual([[], ['a'], []]);
});
