import type { Edge } from './model';
import type { Visit } from './path';

/** A run's path over the graph: per agent and per edge, with the numbers of the steps. */
export interface Overlay {
  visits: Visit[];
  byAgent: Map<string, Mark>;
  byEdge: Map<string, Mark>;
  /** Passes between agents for which the graph has no edge, such as a handoff that a trigger started. */
  extra: { from: string; to: string; mark: Mark }[];
}

export interface Mark { steps: number[]; running: boolean; failed: boolean; startedAt: number; /** The time of all its parts that have ended. */ milliseconds: number; errors: string[] }

export function overlayOf(visits: Visit[], edges: Edge[]): Overlay {
  const byAgent = new Map<string, Mark>();
  const byEdge = new Map<string, Mark>();
  const extra = new Map<string, { from: string; to: string; mark: Mark }>();
  visits.forEach((visit, at) => {
    byAgent.set(visit.agent, add(byAgent.get(visit.agent), visit, at + 1));
    if (!visit.from) return;
    const between = edges.filter((edge) => edge.from === visit.from && edge.to === visit.agent);
    const edge = between.find((each) => each.kind === visit.kind) ?? between[0];
    if (edge) byEdge.set(edge.id, add(byEdge.get(edge.id), visit, at + 1));
    else {
      const key = `${visit.from}|${visit.agent}`;
      extra.set(key, { from: visit.from, to: visit.agent, mark: add(extra.get(key)?.mark, visit, at + 1) });
    }
  });
  return { visits, byAgent, byEdge, extra: [...extra.values()] };
}

function add(mark: Mark | undefined, visit: Visit, step: number): Mark {
  return {
    steps: [...(mark?.steps ?? []), step],
    running: (mark?.running ?? false) || visit.finishedAt === undefined,
    failed: (mark?.failed ?? false) || visit.status === 'failed',
    startedAt: visit.finishedAt === undefined ? visit.startedAt : (mark?.startedAt ?? visit.startedAt),
    milliseconds: (mark?.milliseconds ?? 0) + (visit.finishedAt === undefined ? 0 : visit.finishedAt - visit.startedAt),
    errors: visit.error ? [...(mark?.errors ?? []), visit.error] : (mark?.errors ?? []),
  };
}

/** "1, 4" or, when it is often, "1–9". */
export function stepsText({ steps }: Mark): string {
  return steps.length <= 3 ? steps.join(', ') : `${steps[0]}–${steps.at(-1)}`;
}
