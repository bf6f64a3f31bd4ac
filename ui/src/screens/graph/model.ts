import { capitalize, plural } from '@/lib/format';
import type { EdgeKind } from './kinds';
import type { Graph, GraphEdge, GraphNode } from './queries';

/** Followed without asking a model, so a cycle of such edges would never end. */
const FIXED: ReadonlySet<EdgeKind> = new Set(['advise', 'route', 'member', 'handoff']);

export interface Edge extends GraphEdge {
  id: string;
  /** What is wrong with it: as the server says, or found here. */
  problem?: string;
  /** Its place among the edges between the same two agents, for drawing them apart. */
  lane: number;
}

/** An agent with everything that is wrong with it; `missing` ones are only named by others. */
export interface Node extends GraphNode { missing: boolean; isMain: boolean; findings: string[] }

export interface Model { nodes: Node[]; edges: Edge[]; byId: Map<string, Node> }

/** The graph with missing targets as nodes and the problems that can be seen in it. */
export function modelOf(graph: Graph): Model {
  const known = new Set(graph.agents.map((agent) => agent.id));
  const cycles = cycleEdges(graph);
  const lanes = new Map<string, number>();
  const edges = graph.edges.map((edge, at): Edge => {
    const pair = `${edge.from}|${edge.to}`;
    const lane = lanes.get(pair) ?? 0;
    lanes.set(pair, lane + 1);
    const found = !known.has(edge.to) ? `No agent is called “${edge.to}”` : cycles.has(edge) ? 'Part of a cycle that never ends' : undefined;
    return { ...edge, id: `${pair}|${edge.kind}|${at}`, problem: edge.problem ? plain(edge.problem) : found, lane };
  });
  const reached = reachable(graph);
  const nodes = graph.agents.map((agent): Node => ({ ...agent, missing: false, isMain: agent.id === graph.main, findings: findings(agent, edges, reached) }));
  const missing = [...new Set(graph.edges.map((edge) => edge.to).filter((id) => !known.has(id)))];
  nodes.push(...missing.map(missingNode));
  return { nodes, edges, byId: new Map(nodes.map((node) => [node.id, node])) };
}

function findings(agent: GraphNode, edges: Edge[], reached: Set<string> | undefined): string[] {
  const own = edges.filter((edge) => edge.from === agent.id && edge.problem).map((edge) => edge.problem!);
  const unreachable = reached && !reached.has(agent.id) ? ['Not reachable from the main agent'] : [];
  return [...new Set([...(agent.problems ?? []).map(plain), ...own, ...unreachable])];
}

/** The server's message as a sentence, without Markdown. */
function plain(message: string): string {
  const text = message.replace(/`([^`]+)`/g, '“$1”');
  return capitalize(text);
}

function missingNode(id: string): Node {
  return { id, display_name: id, description: '', remote: false, holds_threads: false, terminal: false, answers: [], order: [], missing: true, isMain: false, findings: ['This agent does not exist'] };
}

/** Everyone the main agent can involve. Agents that take handoffs are reached by their triggers too. */
function reachable(graph: Graph): Set<string> | undefined {
  if (!graph.main) return undefined;
  return walk(graph.edges, [graph.main, ...graph.agents.filter((agent) => agent.holds_threads).map((agent) => agent.id)]);
}

function walk(edges: GraphEdge[], from: string[]): Set<string> {
  const next = new Map<string, string[]>();
  for (const edge of edges) next.set(edge.from, [...(next.get(edge.from) ?? []), edge.to]);
  const reached = new Set<string>();
  const open = [...from];
  for (let id = open.pop(); id !== undefined; id = open.pop()) {
    if (reached.has(id)) continue;
    reached.add(id);
    open.push(...(next.get(id) ?? []));
  }
  return reached;
}

/** The fixed edges that lead back to where they start. */
function cycleEdges(graph: Graph): Set<GraphEdge> {
  const fixed = graph.edges.filter((edge) => FIXED.has(edge.kind));
  const reach = new Map<string, Set<string>>();
  const from = (id: string) => reach.get(id) ?? reach.set(id, walk(fixed, [id])).get(id)!;
  return new Set(fixed.filter((edge) => from(edge.to).has(edge.from)));
}

/** The agent and everyone it can involve, directly or not. */
export function around(model: Model, agent: string | undefined): Model {
  if (!agent || !model.byId.has(agent)) return model;
  const reached = walk(model.edges, [agent]);
  return { ...model, nodes: model.nodes.filter((node) => reached.has(node.id)), edges: model.edges.filter((edge) => reached.has(edge.from)) };
}

export function matches(node: Node, search: string): boolean {
  const text = `${node.display_name}\n${node.id}\n${node.description}`.toLowerCase();
  return search.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

/** Whose words are the answer, for people. */
export function ownership(node: Node, name: (id: string) => string): string {
  if (node.terminal || node.answers.length === 0) return 'Answers itself';
  const [named, rest] = [node.answers.slice(0, 3).map(name), node.answers.length - 3];
  const others = node.other_answers ? ['others'] : rest > 0 ? [plural(rest, 'other')] : [];
  return `Answered by ${[...named, ...others].join(' or ')}`;
}
