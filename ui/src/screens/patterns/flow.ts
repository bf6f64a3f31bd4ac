import { groupBy } from '@/lib/groupBy';
import type { Kind, Pattern } from './data';

/** Every pass of one kind between two agents, whatever the question was. */
export interface Link {
  key: string;
  kind: Kind;
  from: string;
  to: string;
  count: number;
  successes: number;
  rate: number;
  latency: number;
  /** Average over what is known. */
  cost: number;
  liked: number;
  disliked: number;
  classes: string[];
}

export interface PlacedLink extends Link { width: number; y1: number; y2: number }
export interface PlacedNode { agent: string; y: number; height: number; count: number }
export interface Flow { height: number; sources: PlacedNode[]; targets: PlacedNode[]; links: PlacedLink[] }

export function links(patterns: Pattern[]): Link[] {
  const groups = groupBy(patterns, ({ kind, from, to }) => [kind, from, to].join('\u0000'));
  return [...groups].map(([key, parts]) => merge(key, parts)).sort((a, b) => b.count - a.count || a.key.localeCompare(b.key));
}

function merge(key: string, parts: Pattern[]): Link {
  const add = (pick: (one: Pattern) => number) => parts.reduce((sum, one) => sum + pick(one), 0);
  const { kind, from, to } = parts[0]!;
  const count = add((one) => one.count);
  const successes = add((one) => one.successes);
  const mean = (pick: (one: Pattern) => number) => (count > 0 ? add((one) => pick(one) * one.count) / count : 0);
  return {
    key, kind, from, to, count, successes,
    rate: count > 0 ? successes / count : 0,
    latency: mean((one) => one.average_latency_ms),
    cost: mean((one) => one.average_cost_usd),
    liked: add((one) => one.liked),
    disliked: add((one) => one.disliked),
    classes: parts.toSorted((a, b) => b.count - a.count).map((one) => one.query_class),
  };
}

const THINNEST = 3;
const THICKEST = 32;
/** The height that the text of a link needs. */
const SLOT = 24;
const NODE = 48;
const GAP = 16;

/** Places agents in two columns, the busiest first, and the links between them so that their texts do not overlap. */
export function layout(all: Link[]): Flow {
  const most = Math.max(1, ...all.map((link) => link.count));
  const width = (link: Link) => Math.max(THINNEST, Math.round((THICKEST * link.count) / most));
  const sources = column(all, (link) => link.from, width);
  const targets = column(all, (link) => link.to, width);
  const height = Math.max(sources.height, targets.height);
  const [left, right] = [centre(sources, height), centre(targets, height)];
  const y1 = ends(all, left, (link) => link.from, (link) => middleOf(right, link.to), width);
  const y2 = ends(all, right, (link) => link.to, (link) => middleOf(left, link.from), width);
  return { height, sources: left, targets: right, links: all.map((link) => ({ ...link, width: width(link), y1: y1.get(link.key) ?? 0, y2: y2.get(link.key) ?? 0 })) };
}

type Pick = (link: Link) => string;
type Width = (link: Link) => number;

const slot = (link: Link, width: Width) => Math.max(SLOT, width(link) + 4);

function column(all: Link[], agentOf: Pick, width: Width): { nodes: PlacedNode[]; height: number } {
  const groups = [...groupBy(all, agentOf)].map(([agent, own]) => ({
    agent,
    count: own.reduce((sum, link) => sum + link.count, 0),
    height: Math.max(NODE, own.reduce((sum, link) => sum + slot(link, width), 0)),
  }));
  groups.sort((a, b) => b.count - a.count || a.agent.localeCompare(b.agent));
  let y = 0;
  const nodes = groups.map((group) => {
    const node = { ...group, y };
    y += group.height + GAP;
    return node;
  });
  return { nodes, height: Math.max(0, y - GAP) };
}

function centre({ nodes, height }: { nodes: PlacedNode[]; height: number }, full: number): PlacedNode[] {
  const shift = (full - height) / 2;
  return nodes.map((node) => ({ ...node, y: node.y + shift }));
}

function middleOf(nodes: PlacedNode[], agent: string): number {
  const node = nodes.find((one) => one.agent === agent);
  return node ? node.y + node.height / 2 : 0;
}

/** Where the links meet one column: in the order of their other ends, so that they cross as little as possible. */
function ends(all: Link[], nodes: PlacedNode[], agentOf: Pick, otherEnd: (link: Link) => number, width: Width): Map<string, number> {
  const places = new Map<string, number>();
  for (const node of nodes) {
    const own = all.filter((link) => agentOf(link) === node.agent).sort((a, b) => otherEnd(a) - otherEnd(b) || a.key.localeCompare(b.key));
    const used = own.reduce((sum, link) => sum + slot(link, width), 0);
    let y = node.y + (node.height - used) / 2;
    for (const link of own) {
      places.set(link.key, y + slot(link, width) / 2);
      y += slot(link, width);
    }
  }
  return places;
}
