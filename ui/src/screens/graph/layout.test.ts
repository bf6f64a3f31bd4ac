import { expect, it } from 'vitest';
import { layout, NODE_HEIGHT, NODE_WIDTH } from './layout';
import { modelOf } from './model';
import type { Graph } from './queries';

function fan(leaves: number, alone = 0): Graph {
  const node = (id: string) => ({ id, display_name: id, description: '', remote: false, holds_threads: false, terminal: true, answers: [id], order: [] });
  const ids = Array.from({ length: leaves }, (_, at) => `leaf${at}`);
  return { main: 'a', agents: ['a', ...ids, ...Array.from({ length: alone }, (_, at) => `alone${at}`)].map(node), edges: ids.map((to) => ({ from: 'a', to, kind: 'call' as const })) };
}

it.each([[0, 1], [3, 0], [30, 5]])('gives every node a place of its own (%i leaves, %i alone)', (leaves, alone) => {
  const points = [...layout(modelOf(fan(leaves, alone)), 'LR').points.values()];
  expect(points).toHaveLength(1 + leaves + alone);
  const overlap = points.some((one, at) => points.slice(at + 1).some((other) => Math.abs(one.x - other.x) < NODE_WIDTH && Math.abs(one.y - other.y) < NODE_HEIGHT));
  expect(overlap).toBe(false);
});

it('packs many leaves into a grid', () => {
  const points = [...layout(modelOf(fan(40)), 'LR').points.values()];
  expect(Math.max(...points.map((point) => point.y))).toBeLessThan(10 * NODE_HEIGHT);
});

it('runs from top to bottom on narrow screens', () => {
  const { points } = layout(modelOf(fan(2)), 'TB');
  expect(points.get('leaf0')!.y).toBeGreaterThan(points.get('a')!.y);
});

it('leads edges along the gaps of a grid, never behind its nodes', () => {
  const { points, routes } = layout(modelOf(fan(12)), 'LR');
  const tops = [...points].filter(([id]) => id !== 'a').map(([, point]) => point.y);
  expect(routes.size).toBeGreaterThan(0);
  for (const { lane } of routes.values()) expect(tops.some((top) => lane > top && lane < top + NODE_HEIGHT)).toBe(false);
});
