import { expect, it } from 'vitest';
import { baseEdges, baseNodes, withEdgeState, withNodeState } from './flow';
import { modelOf } from './model';
import { overlayOf } from './overlay';

const agent = (id: string) => ({ id, display_name: id, description: '', remote: false, holds_threads: false, terminal: true, answers: [id], order: [] });
const model = modelOf({ main: 'a', agents: ['a', 'b', 'c'].map(agent), edges: [{ from: 'a', to: 'b', kind: 'call' }, { from: 'a', to: 'c', kind: 'transfer' }] });
const places = { points: new Map(), routes: new Map() };
const nodes = baseNodes(model, places, 'LR', (id) => ({ id, name: id }));
const edges = baseEdges(model, places, new Set(['call', 'transfer']));
const known = new Set(['a', 'b', 'c']);

it('keeps the objects of nodes that do not change', () => {
  const first = withNodeState(nodes, { found: new Set(['a']) });
  const second = withNodeState(nodes, { found: new Set(['a']), selected: 'b' });
  expect(first[0]).toBe(nodes[0]);
  expect(second[2]).toBe(first[2]);
  expect(second[1]?.data).toMatchObject({ isSelected: true, isFaded: true });
});

it('marks the path of a run and fades the rest', () => {
  const overlay = overlayOf([{ path: 'a', agent: 'a', status: 'completed', startedAt: 0, finishedAt: 5 }, { path: 'a/call:b', agent: 'b', from: 'a', kind: 'call', status: 'failed', startedAt: 1, finishedAt: 2 }, { path: 'b/handoff:c', agent: 'c', from: 'b', kind: 'handoff', status: 'running', startedAt: 3 }], model.edges);
  expect(withNodeState(nodes, { overlay }).map((node) => node.data.mark?.steps)).toEqual([[1], [2], [3]]);
  const drawn = withEdgeState(edges, { overlay }, known);
  expect(drawn.map((edge) => [edge.source, edge.target, edge.data?.mark?.failed, edge.data?.isFaded])).toEqual([['a', 'b', true, false], ['a', 'c', undefined, true], ['b', 'c', false, false]]);
});

it('leaves out hidden kinds', () => {
  expect(baseEdges(model, places, new Set(['call']))).toHaveLength(1);
});
