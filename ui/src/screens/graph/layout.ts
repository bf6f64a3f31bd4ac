import { Graph as Dagre, layout as run } from '@dagrejs/dagre';
import type { Edge, Model } from './model';

export const NODE_WIDTH = 232;
export const NODE_HEIGHT = 84;
const GAP = 28;
/** From this many leaves on, those of one agent are packed into a grid instead of one long row. */
const GRID_FROM = 7;

export type Direction = 'LR' | 'TB';
export interface Point { x: number; y: number }
/** How an edge reaches a node inside a grid: into the gap beside its row or column, and along it. Drawn straight, it would pass behind other nodes and seem to start there. */
export interface Route { entry: number; lane: number }
export interface Layout { points: Map<string, Point>; routes: Map<string, Route> }
interface Block { id: string; members: string[]; columns: number }

/** The top left corner of every node. Computed once per graph. */
export function layout({ nodes, edges }: Model, direction: Direction): Layout {
  const ids = nodes.map((node) => node.id);
  const linked = new Set(edges.flatMap((edge) => (edge.from === edge.to ? [] : [edge.from, edge.to])));
  const blocks = leafBlocks(edges, direction);
  const blockOf = new Map(blocks.flatMap((block) => block.members.map((id) => [id, block.id] as const)));
  const graph = new Dagre({ directed: true, multigraph: false });
  graph.setGraph({ rankdir: direction, nodesep: 24, ranksep: direction === 'LR' ? 110 : 80, marginx: 16, marginy: 16 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const id of ids) if (linked.has(id) && !blockOf.has(id)) graph.setNode(id, { width: NODE_WIDTH, height: NODE_HEIGHT });
  for (const block of blocks) graph.setNode(block.id, sizeOf(block.members.length, block.columns));
  for (const edge of edges) if (edge.from !== edge.to) graph.setEdge(blockOf.get(edge.from) ?? edge.from, blockOf.get(edge.to) ?? edge.to);
  if (graph.nodeCount() > 0) run(graph);
  const points = new Map<string, Point>();
  for (const id of ids) if (linked.has(id) && !blockOf.has(id)) points.set(id, corner(graph.node(id)));
  const routes = new Map<string, Route>();
  for (const block of blocks) {
    const at = corner(graph.node(block.id));
    place(points, block.members, at, block.columns);
    block.members.forEach((id, index) => {
      const point = points.get(id)!;
      const isBehind = direction === 'LR' ? index % block.columns > 0 : index >= block.columns;
      if (isBehind) routes.set(id, direction === 'LR' ? { entry: at.x - GAP, lane: point.y - GAP / 2 } : { entry: at.y - GAP, lane: point.x - GAP / 2 });
    });
  }
  const bottom = Math.max(0, ...[...points.values()].map((point) => point.y + NODE_HEIGHT + GAP * 3));
  const alone = ids.filter((id) => !linked.has(id));
  place(points, alone, { x: 16, y: bottom }, direction === 'TB' ? 2 : Math.max(3, Math.ceil(Math.sqrt(alone.length * 1.5))));
  return { points, routes };
}

/** The leaves that only one agent leads to, where there are many of them. */
function leafBlocks(edges: Edge[], direction: Direction): Block[] {
  const sources = new Map<string, Set<string>>();
  for (const edge of edges) sources.set(edge.to, (sources.get(edge.to) ?? new Set()).add(edge.from));
  const leads = new Set(edges.map((edge) => edge.from));
  const leaves = new Map<string, string[]>();
  for (const [id, from] of sources) {
    const [only] = from;
    if (from.size === 1 && only && !leads.has(id)) leaves.set(only, [...(leaves.get(only) ?? []), id]);
  }
  return [...leaves].filter(([, members]) => members.length >= GRID_FROM).map(([from, members]) => ({ id: `grid:${from}`, members, columns: direction === 'LR' ? Math.ceil(members.length / 4) : 2 }));
}

function sizeOf(count: number, columns: number): { width: number; height: number } {
  const rows = Math.ceil(count / columns);
  return { width: columns * (NODE_WIDTH + GAP) - GAP, height: rows * (NODE_HEIGHT + GAP) - GAP };
}

function corner({ x, y, width, height }: { x?: number; y?: number; width: number; height: number }): Point {
  return { x: (x ?? 0) - width / 2, y: (y ?? 0) - height / 2 };
}

function place(points: Map<string, Point>, ids: string[], at: Point, columns: number): void {
  ids.forEach((id, index) => points.set(id, { x: at.x + (index % columns) * (NODE_WIDTH + GAP), y: at.y + Math.floor(index / columns) * (NODE_HEIGHT + GAP) }));
}

/** The rectangle around some nodes. */
export function boundsOf(points: Map<string, Point>, ids: Iterable<string>): Point & { width: number; height: number } {
  const corners = [...ids].flatMap((id) => points.get(id) ?? []);
  const x = Math.min(...corners.map((point) => point.x));
  const y = Math.min(...corners.map((point) => point.y));
  return { x, y, width: Math.max(...corners.map((point) => point.x)) + NODE_WIDTH - x, height: Math.max(...corners.map((point) => point.y)) + NODE_HEIGHT - y };
}
