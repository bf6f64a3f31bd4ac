import type { HandoffNotice, Message, Run, ThreadContext } from '@/api/types';
import type { ListedApproval } from '@/approvals/record';
import { mergeDividers, mergeMessage } from './items';
import { mergeRequests } from './requests';
import type { DividerItem, HandoffState, Item, MessageItem, Part, RunState, ThreadState } from './state';

/** A page of the conversation as it is stored. */
export interface History {
  messages: Message[];
  hasOlder?: boolean;
  thread?: ThreadContext;
  runs?: Run[];
  handoffs?: HandoffNotice[];
  approvals?: ListedApproval[];
}

export function applyHistory(state: ThreadState, history: History): ThreadState {
  const messages = history.messages.reduce<Item[]>((items, message) => mergeMessage(items, itemOf(message)), state.items);
  const divided = mergeDividers(messages, (history.handoffs ?? []).flatMap(dividersOf));
  const items = mergeRequests(divided, history.approvals ?? []);
  const next = applyRuns({ ...state, items, hasOlder: history.hasOlder ?? state.hasOlder }, history.runs ?? []);
  return history.thread ? applyThread(next, history.thread, history.handoffs ?? []) : next;
}

/** Who has the thread, as it was when the page was loaded; the events that follow change it. */
function applyThread(state: ThreadState, thread: ThreadContext, handoffs: HandoffNotice[]): ThreadState {
  const open = handoffs.findLast((handoff) => ['pending', 'active', 'returning'].includes(handoff.state));
  const handoff: HandoffState | undefined =
    open && thread.is_handoff_active ? { id: open.handoff_id, phase: open.state === 'pending' ? 'connecting' : (open.state as HandoffState['phase']), from: open.from, to: open.to, name: open.display_name } : undefined;
  return { ...state, handoff, progress: thread.progress ?? undefined, activeRun: thread.active_run_id ?? undefined };
}

/** Runs as they are stored. What the events said of a run is newer. */
function applyRuns(state: ThreadState, runs: Run[]): ThreadState {
  const known = { ...state.runs };
  for (const run of runs) {
    const old = known[run.run_id];
    known[run.run_id] = old && old.status !== 'queued' ? { ...old, sources: old.sources.length > 0 ? old.sources : run.sources } : runOf(run);
  }
  return { ...state, runs: known };
}

function runOf(run: Run): RunState {
  const finishedAt = run.finished_at ? Date.parse(run.finished_at) : undefined;
  return {
    id: run.run_id, agent: run.agent, status: run.status, startedAt: Date.parse(run.started_at ?? run.created_at), finishedAt,
    subAgents: [], sources: run.sources, usage: run.usage, error: run.error,
    isRemoved: run.status === 'cancelled' && !run.started_at,
  };
}

function itemOf(message: Message): MessageItem {
  const text = message.parts.map(textOf).filter(Boolean).join('\n');
  const attachments = message.parts.filter((part) => part.type === 'image' || part.type === 'file');
  const role = message.role === 'user' ? 'user' : 'assistant';
  return {
    kind: 'message', id: message.message_id, role, runId: message.run_id, agent: message.agent, name: message.display_name,
    text, attachments, at: Date.parse(message.created_at), status: 'done', number: message.number, rating: message.rating,
  };
}

function textOf(part: Part): string {
  if (part.type === 'text') return part.text;
  return part.type === 'data' ? `\`\`\`json\n${JSON.stringify(part.data, null, 2)}\n\`\`\`` : '';
}

function dividersOf(handoff: HandoffNotice): DividerItem[] {
  const { handoff_id: handoffId, from, to } = handoff;
  const start: DividerItem = { kind: 'divider', id: `${handoffId}:start`, handoffId, edge: 'start', text: handoff.message, mode: handoff.mode || undefined, agent: to, at: Date.parse(handoff.started_at) };
  if (!handoff.completed_at) return [start];
  const failed = handoff.state === 'error';
  const end: DividerItem = { kind: 'divider', id: `${handoffId}:end`, handoffId, edge: 'end', text: handoff.end_message ?? '', agent: from, failed, at: Date.parse(handoff.completed_at) };
  return [start, end];
}
