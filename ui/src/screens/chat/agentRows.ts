import type { Session } from '@/api/types';
import { plural } from '@/lib/format';
import type { RunState, SubAgent, ToolCall } from '@/thread/state';

/** One agent that worked behind an answer. */
export interface AgentRow {
  id: string;
  depth: number;
  agent: string;
  name?: string | undefined;
  task?: string | undefined;
  status: 'running' | 'waiting' | 'done' | 'failed' | 'cancelled';
  startedAt: number;
  finishedAt?: number | undefined;
  text: string;
  tools: ToolCall[];
  error?: string | undefined;
}

/** The sub-agents of a run that this tab has followed, children below their parents. */
export function liveRows(run: RunState): AgentRow[] {
  const known = new Set(run.subAgents.map(({ id }) => id));
  const below = (parent: string | undefined, depth: number): AgentRow[] =>
    run.subAgents
      .filter((one) => (one.parent !== undefined && known.has(one.parent) ? one.parent : undefined) === parent)
      .flatMap((one) => [rowOf(one, depth), ...below(one.id, depth + 1)]);
  return below(undefined, 0);
}

function rowOf({ id, agent, name, task, status, startedAt, finishedAt, text, tools, error }: SubAgent, depth: number): AgentRow {
  return { id, depth, agent, name, task, status, startedAt, finishedAt, text, tools, error };
}

const STATUS: Record<Session['status'], AgentRow['status']> = { queued: 'running', running: 'running', waiting: 'waiting', completed: 'done', failed: 'failed', cancelled: 'cancelled', interrupted: 'cancelled' };

/** The same from a stored run. Left out are the agents that answered: the first level, and those that took over by a transfer. */
export function storedRows(sessions: Session[]): AgentRow[] {
  const below = (children: Session[], depth: number): AgentRow[] =>
    children.flatMap((one) => (isTransfer(one) ? below(one.sessions, depth) : [rowOfSession(one, depth), ...below(one.sessions, depth + 1)]));
  return sessions.flatMap((root) => below(root.sessions, 0));
}

function isTransfer({ path }: Session): boolean {
  return path.split('/').some((step) => step.startsWith('transfer'));
}

function rowOfSession(one: Session, depth: number): AgentRow {
  const finishedAt = one.finished_at ? Date.parse(one.finished_at) : undefined;
  return { id: one.session_id, depth, agent: one.agent, task: one.why, status: STATUS[one.status], startedAt: Date.parse(one.started_at), finishedAt, text: '', tools: [], error: one.error?.message };
}

/** "3 agents working, 2 done", or "2 agents contributed, 1 failed". Each agent is counted once. */
export function summaryOf(statuses: AgentRow['status'][]): string {
  const number = (status: AgentRow['status']) => statuses.filter((one) => one === status).length;
  const [running, waiting, done, failed, cancelled] = [number('running'), number('waiting'), number('done'), number('failed'), number('cancelled')];
  const also = [waiting > 0 && `${waiting} waiting`, failed > 0 && `${failed} failed`, cancelled > 0 && `${cancelled} stopped`];
  const parts = running > 0 ? [`${plural(running, 'agent')} working`, done > 0 && `${done} done`, ...also] : [(done > 0 || waiting === 0) && `${plural(done, 'agent')} contributed`, ...also];
  return parts.filter(Boolean).join(', ');
}
