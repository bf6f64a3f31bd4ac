import type { Node } from './model';

/** What an agent is in the graph, in words. */
export function rolesOf(node: Node): string[] {
  if (node.missing) return ['Missing'];
  const stages = new Set(node.order.map((stage) => stage.stage));
  return [
    ...(node.isMain ? ['Main'] : []),
    ...(node.holds_threads ? ['Holds threads'] : []),
    ...(node.remote ? ['Remote'] : []),
    ...(stages.has('route') ? ['Router'] : []),
    ...(stages.has('team') ? ['Team coordinator'] : []),
  ];
}
