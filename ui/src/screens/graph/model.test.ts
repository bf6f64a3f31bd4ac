import { describe, expect, it } from 'vitest';
import { around, matches, modelOf, ownership } from './model';
import type { Graph, GraphEdge, GraphNode } from './queries';

const node = (id: string, fields: Partial<GraphNode> = {}): GraphNode => ({ id, display_name: id.toUpperCase(), description: '', remote: false, holds_threads: false, terminal: true, answers: [id], order: [], ...fields });
const edge = (from: string, to: string, kind: GraphEdge['kind'] = 'call'): GraphEdge => ({ from, to, kind });
const graph = (agents: GraphNode[], edges: GraphEdge[], main = 'a'): Graph => ({ agents, edges, main });

describe('graph model', () => {
  it('adds missing targets and marks the edge and its source', () => {
    const model = modelOf(graph([node('a')], [edge('a', 'gone')]));
    expect(model.byId.get('gone')).toMatchObject({ missing: true });
    expect(model.edges[0]?.problem).toContain('gone');
    expect(model.byId.get('a')?.findings).toHaveLength(1);
  });

  it('finds cycles of fixed edges, not of transfers', () => {
    const agents = [node('a'), node('b'), node('c')];
    const model = modelOf(graph(agents, [edge('a', 'b', 'handoff'), edge('b', 'a', 'advise'), edge('a', 'c', 'transfer'), edge('c', 'a', 'transfer')]));
    expect(model.edges.map((each) => Boolean(each.problem))).toEqual([true, true, false, false]);
  });

  it('marks agents that the main agent cannot reach', () => {
    const model = modelOf(graph([node('a'), node('b'), node('c'), node('d', { holds_threads: true })], [edge('a', 'b')]));
    expect(['a', 'b', 'c', 'd'].map((id) => model.byId.get(id)!.findings.length)).toEqual([0, 0, 1, 0]);
  });

  it('keeps the server\'s own problems and numbers parallel edges', () => {
    const model = modelOf(graph([node('a', { problems: ['bad'] }), node('b')], [{ ...edge('a', 'b'), problem: 'worse `x`' }, edge('a', 'b', 'transfer')]));
    expect(model.byId.get('a')?.findings).toEqual(['Bad', 'Worse “x”']);
    expect(model.edges.map((each) => each.lane)).toEqual([0, 1]);
  });

  it('limits the graph to those an agent can involve', () => {
    const model = around(modelOf(graph([node('a'), node('b'), node('c')], [edge('a', 'b'), edge('b', 'c')])), 'b');
    expect(model.nodes.map((each) => each.id)).toEqual(['b', 'c']);
    expect(model.edges).toHaveLength(1);
    expect(around(model, 'unknown')).toBe(model);
  });

  it('says who answers', () => {
    const model = modelOf(graph([node('a', { terminal: false, answers: ['b', 'c'], other_answers: true }), node('b'), node('c')], []));
    expect(ownership(model.byId.get('a')!, (id) => id)).toBe('Answered by b or c or others');
    expect(ownership({ ...model.byId.get('a')!, answers: ['b', 'c', 'd', 'e', 'f'], other_answers: false }, (id) => id)).toBe('Answered by b or c or d or 2 others');
    expect(ownership(model.byId.get('b')!, (id) => id)).toBe('Answers itself');
    expect(matches(model.byId.get('b')!, 'B')).toBe(true);
  });
});
