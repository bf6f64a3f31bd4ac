import { expect, test } from 'vitest';
import { agentsIn, filtered, gradeOf, nextSort, percent, sorted, sortOf, type Pattern } from './data';
import { layout, links } from './flow';

function pattern(kind: Pattern['kind'], from: string, to: string, query_class: string, count: number, successes: number): Pattern {
  return { kind, from, to, query_class, count, successes, success_rate: successes / count, average_latency_ms: count * 10, average_cost_usd: 0, liked: 1, disliked: 0, last_at: '2026-11-16T10:00:00Z' };
}

const PATTERNS = [
  pattern('transfer', 'assistant', 'knowledge', 'limits', 8, 8),
  pattern('transfer', 'assistant', 'knowledge', 'stores', 2, 0),
  pattern('handoff', 'assistant', 'writer', 'skill', 4, 3),
  pattern('route', 'triage', 'knowledge', 'question', 1, 1),
];

test('filters by kind and by agent on either end', () => {
  expect(filtered(PATTERNS, { kind: 'handoff' })).toHaveLength(1);
  expect(filtered(PATTERNS, { agent: 'knowledge' })).toHaveLength(3);
  expect(agentsIn(PATTERNS)).toEqual(['assistant', 'knowledge', 'triage', 'writer']);
});

test('sorts by the address and turns around on the second click', () => {
  expect(sortOf('-success')).toEqual({ key: 'success', descending: true });
  expect(sortOf('nonsense')).toEqual({ key: 'count', descending: true });
  expect(nextSort({ key: 'count', descending: true }, 'count')).toBe('count');
  expect(nextSort({ key: 'count', descending: true }, 'from')).toBe('from');
  expect(sorted(PATTERNS, sortOf('count')).map((one) => one.count)).toEqual([1, 2, 4, 8]);
});

test('a link adds up the classes of one path', () => {
  const [first] = links(PATTERNS);
  expect(first).toMatchObject({ from: 'assistant', to: 'knowledge', count: 10, successes: 8, rate: 0.8, latency: 68, liked: 2, classes: ['limits', 'stores'] });
});

test('links meet their nodes and keep room for their texts', () => {
  const flow = layout(links(PATTERNS));
  for (const [nodes, side, end] of [[flow.sources, 'from', 'y1'], [flow.targets, 'to', 'y2']] as const) {
    for (const node of nodes) {
      const own = flow.links.filter((link) => link[side] === node.agent).map((link) => link[end]).sort((a, b) => a - b);
      expect(own[0]).toBeGreaterThanOrEqual(node.y);
      expect(own.at(-1)).toBeLessThanOrEqual(node.y + node.height);
      own.slice(1).forEach((y, at) => expect(y - own[at]!).toBeGreaterThanOrEqual(20));
    }
  }
});

test('almost always is not always', () => {
  expect([percent(1), percent(0.997), percent(0.42)]).toEqual(['100 %', '99 %', '42 %']);
  expect([gradeOf(0.9), gradeOf(0.6), gradeOf(0.2)]).toEqual(['good', 'mixed', 'poor']);
});
