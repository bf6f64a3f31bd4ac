import { expect, it } from 'vitest';
import { facts, guardFacts, inline, jumps, words } from './definition';

it('writes keys as words', () => {
  expect(words('gathering_requirements')).toBe('Gathering requirements');
});

it('writes values in one line', () => {
  expect([inline([]), inline(['a', 'b']), inline(false), inline(null), inline({ a: 1 })]).toEqual(['none', 'a, b', 'no', '–', '{"a":1}']);
});

it('turns a map into facts', () => {
  expect(facts({ max_turns: 12, timeout: '5m', max_tokens: 50000, max_cost_usd: 0.25 })).toEqual([['Max turns', '12'], ['Timeout', '5m'], ['Max tokens', '50,000'], ['Max cost (USD)', '0.25']]);
  expect(facts({ exclusive: true, destinations: ['read_me'], others: [] })).toEqual([['Exclusive', 'Yes'], ['Destinations', 'read_me'], ['Others', 'None']]);
  expect(facts(undefined)).toEqual([]);
});

it('names only steps that are not the next one', () => {
  const states = [{ name: 'a', next: ['b'] }, { name: 'b', next: ['c', 'a'] }, { name: 'c', next: [] }];
  expect(states.map((_, at) => jumps(states, at))).toEqual([[], ['a'], []]);
});

it('guardrails are listed by side, in their order', () => {
  expect(guardFacts(undefined)).toEqual([]);
  expect(guardFacts({ input: [{ max_length: 4000 }, { deny: ['a', 'b'] }], output: [{ pii: ['card'] }, { judge: 'safety', message: 'No.' }, { schema: {} }] })).toEqual([
    ['Input', 'at most 4,000 characters · not a, b'],
    ['Output', 'no card · judged by safety · JSON of a schema'],
  ]);
});
