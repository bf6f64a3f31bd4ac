import type { Edge as FlowEdge, Node as FlowNode } from '@xyflow/react';
import type { AgentFace } from '@/api/useAgents';
import { NODE_HEIGHT, NODE_WIDTH, type Direction, type Layout, type Route } from './layout';
import { ownership, type Edge, type Model, type Node } from './model';
import type { Mark, Overlay } from './overlay';

export interface NodeData extends Record<string, unknown> { node: Node; face: AgentFace; /** Whose words are the answer. */ answers: string; direction: Direction; isSelected: boolean; isFaded: boolean; mark?: Mark | undefined }
export interface EdgeData extends Record<string, unknown> { edge?: Edge | undefined; lane: number; route?: Route | undefined; isNear: boolean; isFaded: boolean; mark?: Mark | undefined }
export type AgentFlowNode = FlowNode<NodeData, 'agent'>;
export type AgentFlowEdge = FlowEdge<EdgeData, 'relation'>;

/** The nodes in their places. The objects of untouched nodes stay the same when only the run or the selection changes. */
export function baseNodes(model: Model, { points }: Layout, direction: Direction, face: (id: string) => AgentFace): AgentFlowNode[] {
  return model.nodes.map((node) => ({ id: node.id, type: 'agent', position: points.get(node.id) ?? { x: 0, y: 0 }, width: NODE_WIDTH, height: NODE_HEIGHT, data: { node, face: face(node.id), answers: ownership(node, (id) => face(id).name), direction, isSelected: false, isFaded: false } }));
}

export function baseEdges(model: Model, { routes }: Layout, kinds: ReadonlySet<string>): AgentFlowEdge[] {
  return model.edges.filter((edge) => kinds.has(edge.kind)).map((edge) => ({ id: edge.id, type: 'relation', source: edge.from, target: edge.to, data: { edge, lane: edge.lane, route: routes.get(edge.to), isNear: false, isFaded: false } }));
}

const fadedNodes = new WeakMap<AgentFlowNode, AgentFlowNode>();
const fadedEdges = new WeakMap<AgentFlowEdge, AgentFlowEdge>();

/** The faded form of a node or edge, always the same object, so that it is drawn again only when it changes. */
function faded<Part extends AgentFlowNode | AgentFlowEdge>(part: Part, cache: WeakMap<Part, Part>): Part {
  const known = cache.get(part);
  if (known) return known;
  const copy = { ...part, data: { ...part.data, isFaded: true } };
  cache.set(part, copy);
  return copy;
}

interface Emphasis { selected?: string | undefined; found?: ReadonlySet<string> | undefined; overlay?: Overlay | undefined }

export function withNodeState(nodes: AgentFlowNode[], { selected, found, overlay }: Emphasis): AgentFlowNode[] {
  return nodes.map((node) => {
    const mark = overlay?.byAgent.get(node.id);
    const isSelected = node.id === selected;
    const isFaded = (found !== undefined && !found.has(node.id)) || (overlay !== undefined && !mark);
    if (mark || isSelected) return { ...node, data: { ...node.data, mark, isSelected, isFaded } };
    return isFaded ? faded(node, fadedNodes) : node;
  });
}

export function withEdgeState(edges: AgentFlowEdge[], { selected, found, overlay }: Emphasis, known: ReadonlySet<string>): AgentFlowEdge[] {
  const marked = edges.map((edge) => {
    const mark = overlay?.byEdge.get(edge.id);
    const isNear = edge.source === selected || edge.target === selected;
    const isFaded = (found !== undefined && !(found.has(edge.source) && found.has(edge.target))) || (overlay !== undefined && !mark);
    if (mark || isNear) return { ...edge, zIndex: mark ? 1 : 0, data: { lane: 0, ...edge.data, mark, isNear, isFaded } };
    return isFaded ? faded(edge, fadedEdges) : edge;
  });
  const extra = (overlay?.extra ?? []).filter(({ from, to }) => known.has(from) && known.has(to));
  return [...marked, ...extra.map(({ from, to, mark }): AgentFlowEdge => ({ id: `extra|${from}|${to}`, type: 'relation', source: from, target: to, zIndex: 1, data: { lane: 0, mark, isNear: false, isFaded: false } }))];
}
