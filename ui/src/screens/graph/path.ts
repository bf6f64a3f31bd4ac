import type { AguiEvent } from '@/api/events';
import type { RunDetail, RunStatus, Session } from '@/api/types';
import type { EdgeKind } from './kinds';

/** One agent's part in a run. Its path in the run is its identity. */
export interface Visit {
  path: string;
  agent: string;
  /** Who involved it, and how; nothing for the agent that was asked first. */
  from?: string | undefined;
  kind?: EdgeKind | undefined;
  status: RunStatus;
  startedAt: number;
  finishedAt?: number | undefined;
  error?: string | undefined;
  why?: string | undefined;
}

const KIND_OF: Record<string, EdgeKind> = { call: 'call', delegate: 'call', advisor: 'advise', member: 'member', handoff: 'handoff', route: 'route', transfer: 'transfer' };

interface Place { path: string; agent: string; from?: string | undefined; kind?: EdgeKind | undefined }

/** The agents along a path such as `assistant/turn:1/tool:1/call:research`, the first asked first. */
export function places(segments: string[]): Place[] {
  const found: Place[] = segments[0] ? [{ path: segments[0], agent: segments[0] }] : [];
  segments.forEach((segment, at) => {
    const [word = '', agent] = segment.split(/:(.*)/);
    const kind = KIND_OF[word];
    if (at > 0 && kind && agent) found.push({ path: segments.slice(0, at + 1).join('/'), agent, from: found.at(-1)?.agent, kind });
  });
  return found;
}

/** The parts of a run in the order in which they began. */
export function visitsOf(run: RunDetail): Visit[] {
  const collect = (sessions: Session[]): Visit[] => sessions.flatMap((session) => [visitOf(session), ...collect(session.sessions)]);
  return collect(run.sessions).sort((one, other) => one.startedAt - other.startedAt || one.path.length - other.path.length);
}

function visitOf(session: Session): Visit {
  const place = places(session.path.split('/')).at(-1);
  return {
    path: session.path, agent: session.agent, from: place?.from, kind: place?.kind, status: session.status, startedAt: Date.parse(session.started_at),
    finishedAt: session.finished_at ? Date.parse(session.finished_at) : undefined, error: session.error?.message, why: session.why,
  };
}

const END: Partial<Record<AguiEvent['type'], RunStatus>> = { SUBAGENT_FINISHED: 'completed', SUBAGENT_ERROR: 'failed', RUN_FINISHED: 'completed', RUN_ERROR: 'failed' };

/** What an event of a running run adds: agents that begin, and agents that end. The same list is returned when nothing changes. */
export function applyEvent(visits: Visit[], event: AguiEvent): Visit[] {
  const origin = event.metadata?.baton;
  if (!origin) return visits;
  const at = event.timestamp ?? Date.now();
  const all = places(origin.path);
  const known = new Set(visits.map((visit) => visit.path));
  const begun = all.filter((place) => !known.has(place.path)).map((place): Visit => ({ ...place, status: 'running', startedAt: at, why: event.type === 'SUBAGENT_STARTED' ? event.description : undefined }));
  const status = END[event.type];
  const next = begun.length > 0 ? [...visits, ...begun] : visits;
  if (!status) return next;
  const ended = event.type.startsWith('RUN_') ? all[0]?.path : all.at(-1)?.path;
  const error = event.type === 'SUBAGENT_ERROR' || event.type === 'RUN_ERROR' ? event.message : undefined;
  // The end of the run ends everyone; the end of a part ends those below it.
  return next.map((visit) => (visit.status === 'running' && ended && `${visit.path}/`.startsWith(`${ended}/`) ? { ...visit, status, finishedAt: at, error: visit.path === ended ? error : visit.error } : visit));
}

/** What the stored run knows, and what came after it. */
export function merged(stored: Visit[], live: Visit[]): Visit[] {
  const known = new Map(live.map((visit) => [visit.path, visit]));
  const kept = stored.map((visit) => (visit.finishedAt === undefined ? { ...visit, ...known.get(visit.path) } : visit));
  const paths = new Set(stored.map((visit) => visit.path));
  return [...kept, ...live.filter((visit) => !paths.has(visit.path))];
}
