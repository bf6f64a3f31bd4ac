import type { Call, Session, Step } from '@/api/types';
import { groupBy } from '@/lib/groupBy';
import type { TreeNode } from '../tree/flatten';

export type SegmentKind = 'model' | 'tool' | 'delegation' | 'wait';

/** A stretch of a session's time. Without `end` it is still going on. */
export interface Segment {
  id: string;
  kind: SegmentKind;
  start: number;
  end?: number | undefined;
  /** Calls at the same time are drawn below each other. */
  lane: number;
  call?: Call | undefined;
  name: string;
  attempt: number;
  attempts: number;
}

export interface TimelineRow {
  node: TreeNode;
  start: number;
  end?: number | undefined;
  segments: Segment[];
  lanes: number;
}

const MAX_LANES = 6;
/** Times are rounded to milliseconds: this much overlap is none. */
const ROUNDING = 1;

/** One row for each session: its calls in lanes, and the waits between them. `shortestWait` leaves out gaps that are only overhead. */
export function timelineRows(nodes: TreeNode[], calls: Call[], steps: Step[], shortestWait: number): TimelineRow[] {
  const callsOf = groupBy(calls, (call) => call.session_id);
  const openOf = groupBy(steps.filter((step) => step.state === 'started'), (step) => step.session_id);
  return nodes.map((node) => {
    const { session } = node;
    const start = Date.parse(session.started_at);
    const end = session.finished_at ? Date.parse(session.finished_at) : undefined;
    const parents = session.sessions.map((child) => child.path);
    const done = ofCalls(callsOf.get(node.id) ?? [], parents);
    const open = end === undefined ? ofOpenSteps(openOf.get(node.id) ?? [], parents) : [];
    const { segments, lanes } = inLanes([...done, ...open]);
    return { node, start, end, lanes, segments: [...segments, ...waits(session, segments, shortestWait)] };
  });
}

function ofCalls(calls: Call[], childPaths: string[]): Segment[] {
  const attempts = attemptsOf(calls);
  return calls.map((call, at) => {
    const start = Date.parse(call.started_at);
    const { attempt, of } = attempts[at] ?? { attempt: 1, of: 1 };
    const kind = call.kind === 'tool' && childPaths.some((path) => path.startsWith(`${call.path}/`)) ? 'delegation' : call.kind;
    return { id: `${call.path}#${attempt}`, kind, start, end: start + call.latency_ms, lane: 0, call, name: call.name, attempt, attempts: of };
  });
}

/** What was begun and is not over: the ledger has no entry for it yet. */
function ofOpenSteps(steps: Step[], childPaths: string[]): Segment[] {
  return steps
    .filter((step) => step.kind === 'turn' || step.kind === 'tool')
    .map((step) => {
      const isDelegation = childPaths.some((path) => path.startsWith(`${step.path}/`));
      const kind = step.kind === 'turn' ? 'model' : isDelegation ? 'delegation' : 'tool';
      return { id: `${step.path}#open`, kind, start: Date.parse(step.at), lane: 0, name: step.kind === 'turn' ? 'Model call' : 'Tool call', attempt: 1, attempts: 1 };
    });
}

/** Calls with the same path are attempts at the same thing, in the order in which they began. */
export function attemptsOf(calls: Call[]): { attempt: number; of: number }[] {
  const totals = new Map<string, number>();
  const numbered = calls.map((call) => {
    const attempt = (totals.get(call.path) ?? 0) + 1;
    totals.set(call.path, attempt);
    return { path: call.path, attempt };
  });
  return numbered.map(({ path, attempt }) => ({ attempt, of: totals.get(path) ?? 1 }));
}

/** Puts what overlaps into lanes of its own. */
function inLanes(segments: Segment[]): { segments: Segment[]; lanes: number } {
  const ends: number[] = [];
  const sorted = [...segments].sort((one, other) => one.start - other.start);
  const placed = sorted.map((segment) => {
    const free = ends.findIndex((end) => end <= segment.start + ROUNDING);
    const lane = free >= 0 ? free : Math.min(ends.length, MAX_LANES - 1);
    ends[lane] = Math.max(ends[lane] ?? 0, segment.end ?? Infinity);
    return { ...segment, lane };
  });
  return { segments: placed, lanes: Math.max(1, ends.length) };
}

/** Gaps in which nothing was called: waiting for a person, for a permit, or between attempts. */
function waits(session: Session, segments: Segment[], shortest: number): Segment[] {
  const start = Date.parse(session.started_at);
  // An open session's last stretch is a wait only where the server says so.
  const isWaiting = session.status === 'waiting' || session.status === 'queued';
  const end = session.finished_at ? Date.parse(session.finished_at) : undefined;
  const found: Segment[] = [];
  const gap = (from: number, to: number | undefined) => {
    if (to !== undefined && to - from < shortest) return;
    found.push({ id: `${session.session_id}#wait${found.length}`, kind: 'wait', start: from, end: to, lane: 0, name: 'Waiting', attempt: 1, attempts: 1 });
  };
  let covered = start;
  for (const segment of segments) {
    if (segment.start > covered) gap(covered, segment.start);
    covered = Math.max(covered, segment.end ?? Infinity);
  }
  if (end !== undefined && end > covered) gap(covered, end);
  else if (end === undefined && isWaiting && Number.isFinite(covered)) gap(covered, undefined);
  return found;
}

/** Before the first session the run waited for a worker. */
export function withQueue(rows: TimelineRow[], createdAt: string, shortest: number): TimelineRow[] {
  const [first, ...others] = rows;
  const created = Date.parse(createdAt);
  if (!first || first.start - created < shortest) return rows;
  const queued: Segment = { id: 'queued', kind: 'wait', start: created, end: first.start, lane: 0, name: 'Queued', attempt: 1, attempts: 1 };
  return [{ ...first, segments: [queued, ...first.segments] }, ...others];
}
