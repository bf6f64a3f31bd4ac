import type { ActiveAgent, AguiEvent, BudgetValue, FilesContent, HandoffValue, Progress, SnapshotMessage, UsageValue } from '@/api/events';
import type { Approval } from '@/approvals/record';
import { applyHandoff } from './handoff';
import { applyHistory, type History } from './history';
import { addOfRun, changeItem, mergeMessage, removeItem } from './items';
import { applyRequest, removeRequest } from './requests';
import { addSubAgent, applyUsage, changeRun, changeSubAgent, changeText, changeTool, endRun, startRun } from './runs';
import { emptyThread, type MessageItem, type RunState, type ThreadState } from './state';

export type Action =
  | { type: 'events'; events: AguiEvent[] }
  | { type: 'history'; history: History }
  | { type: 'sending'; message: MessageItem }
  | { type: 'accepted'; localId: string; messageId: string; runId: string; agent: string }
  | { type: 'refused'; localId: string; problem: string }
  | { type: 'removed'; runId: string }
  | { type: 'discarded'; id: string }
  | { type: 'rated'; messageId: string; rating: number }
  | { type: 'decided'; approvalId: string; approval: Approval | undefined }
  | { type: 'reset' };

/** The whole state of a thread is this function over what the server says. */
export function reduce(state: ThreadState, action: Action): ThreadState {
  switch (action.type) {
    case 'events': return action.events.reduce(applyEvent, state);
    case 'history': return applyHistory(state, action.history);
    case 'sending': return { ...state, items: [...state.items.filter((item) => item.id !== action.message.id), action.message] };
    case 'accepted': return accept(state, action);
    case 'refused': return changeItem(state, action.localId, (item) => ({ ...item, status: 'failed', problem: action.problem }));
    case 'removed': return changeRun(state, action.runId, (run) => ({ ...run, status: 'cancelled', isRemoved: true }));
    case 'discarded': return removeItem(state, action.id);
    case 'rated': return changeItem(state, action.messageId, (item) => ({ ...item, rating: action.rating }));
    case 'decided': return action.approval ? applyRequest(state, action.approval, undefined) : removeRequest(state, action.approvalId);
    case 'reset': return emptyThread;
  }
}

/** The message has its id and its run. The beginning of the run, or the message itself, may have come by the stream before. */
function accept(state: ThreadState, { localId, messageId, runId, agent }: Extract<Action, { type: 'accepted' }>): ThreadState {
  const local = state.items.find((item) => item.id === localId);
  if (local?.kind !== 'message') return state;
  const confirmed: MessageItem = { ...local, id: messageId, key: local.key ?? localId, runId, status: 'done' };
  const others = state.items.filter((item) => item.id !== localId);
  const queued: RunState = { id: runId, agent, status: 'queued', startedAt: confirmed.at, subAgents: [], sources: [] };
  const next: ThreadState = { ...state, runs: { [runId]: queued, ...state.runs }, items: others };
  if (others.some((item) => item.id === messageId)) return next;
  const isAnswer = others.some((item) => item.runId === runId && item.kind === 'message' && item.role === 'user');
  // An answer to a question follows what its run has said; another message precedes what its own run says.
  const last = others.findLastIndex((item) => item.runId === runId);
  const at = isAnswer ? last + 1 : others.findIndex((item) => item.runId === runId);
  return { ...next, items: at < 0 ? [...others, confirmed] : others.toSpliced(at, 0, confirmed) };
}

export function applyEvent(state: ThreadState, event: AguiEvent): ThreadState {
  const origin = event.metadata?.baton;
  const runId = origin?.run_id ?? state.activeRun;
  const at = event.timestamp ?? Date.now();
  if (event.subagentRunId !== undefined) return changeRun(state, runId, (run) => applySubAgent(run, event, origin?.agent ?? '', at));
  switch (event.type) {
    case 'RUN_STARTED': return startRun(state, event.runId, origin?.agent ?? '', at);
    case 'RUN_FINISHED': return endRun(closeTexts(state, event.runId), event.runId, { status: STATUS[event.outcome?.type ?? 'success'] }, at);
    case 'RUN_ERROR': return runId ? endRun(closeTexts(state, runId), runId, { status: 'failed', error: { code: event.code ?? 'error', message: event.message } }, at) : state;
    case 'TEXT_MESSAGE_START': return openText(state, event, runId, origin?.agent, at);
    case 'TEXT_MESSAGE_CONTENT': return changeItem(state, event.messageId, (item) => ({ ...item, text: item.text + event.delta }));
    case 'TEXT_MESSAGE_END': return changeItem(state, event.messageId, (item) => ({ ...item, status: 'done' }));
    case 'STATE_SNAPSHOT': return { ...state, activeAgent: event.snapshot.activeAgent ?? state.activeAgent };
    case 'STATE_DELTA': return { ...state, activeAgent: activeAgentIn(event.delta) ?? state.activeAgent };
    case 'MESSAGES_SNAPSHOT': return event.messages.reduce(applySnapshot, state);
    case 'ACTIVITY_SNAPSHOT': return applyActivity(state, runId, event.activityType, event.content);
    case 'CUSTOM': return applyCustom(state, runId, event.name, event.value, at);
    default: return state;
  }
}

const STATUS = { success: 'completed', interrupt: 'waiting', cancelled: 'cancelled' } as const;

/** Opens a text. One that is open already comes again from its start, as after a reconnect. */
function openText(state: ThreadState, event: Extract<AguiEvent, { type: 'TEXT_MESSAGE_START' }>, runId: string | undefined, agent: string | undefined, at: number): ThreadState {
  const run = changeRun(state, runId, (run) => ({ ...run, activity: undefined }));
  const role = event.role === 'user' ? 'user' : 'assistant';
  const item: MessageItem = { kind: 'message', id: event.messageId, role, runId, agent, name: event.name, text: '', attachments: [], at, status: 'streaming' };
  const isKnown = run.items.some((other) => other.id === event.messageId);
  return isKnown ? changeItem(run, event.messageId, (old) => ({ ...old, text: '', status: 'streaming' })) : addOfRun(run, item);
}

/** A run that has ended writes no more. */
function closeTexts(state: ThreadState, runId: string): ThreadState {
  const isOpen = (item: ThreadState['items'][number]) => item.kind === 'message' && item.status === 'streaming' && item.runId === runId;
  if (!state.items.some(isOpen)) return state;
  return { ...state, items: state.items.map((item) => (isOpen(item) ? ({ ...item, status: 'done' } as MessageItem) : item)) };
}

function applySubAgent(run: RunState, event: AguiEvent, agent: string, at: number): RunState {
  const id = event.subagentRunId ?? '';
  switch (event.type) {
    case 'SUBAGENT_STARTED':
      return addSubAgent(run, { id, parent: event.parentSubagentRunId, agent, name: event.name, task: event.description, status: 'running', startedAt: at, text: '', tools: [] });
    case 'SUBAGENT_FINISHED': return changeSubAgent(run, id, (one) => (event.outcome?.type === 'suspended' ? { ...one, status: 'waiting' } : { ...one, status: 'done', finishedAt: at }));
    case 'SUBAGENT_ERROR': return changeSubAgent(run, id, (one) => ({ ...one, ...(event.code === 'cancelled' ? { status: 'cancelled' } : { status: 'failed', error: event.message }), finishedAt: at }));
    case 'TEXT_MESSAGE_START': return changeSubAgent(run, id, (one) => changeText(one, event.messageId, () => ''));
    case 'TEXT_MESSAGE_CONTENT': return changeSubAgent(run, id, (one) => changeText(one, event.messageId, (text) => text + event.delta));
    case 'CUSTOM': return event.name === 'baton.turn_restarted' ? changeSubAgent(run, id, (one) => changeText(one, (event.value as { message_id: string }).message_id, () => undefined)) : run;
    case 'TOOL_CALL_START':
      return changeSubAgent(run, id, (one) => ({ ...one, tools: [...one.tools.filter((call) => call.id !== event.toolCallId), { id: event.toolCallId, name: event.toolCallName, arguments: '' }] }));
    case 'TOOL_CALL_ARGS': return changeSubAgent(run, id, (one) => changeTool(one, event.toolCallId, (call) => ({ ...call, arguments: call.arguments + event.delta })));
    case 'TOOL_CALL_RESULT':
      return changeSubAgent(run, id, (one) => changeTool(one, event.toolCallId, (call) => ({ ...call, result: typeof event.content === 'string' ? event.content : JSON.stringify(event.content) })));
    default: return run;
  }
}

/** A message of the snapshot that a stream begins with. Known messages are kept as they are. */
function applySnapshot(state: ThreadState, message: SnapshotMessage): ThreadState {
  const { run_id: runId, agent } = message.metadata?.baton ?? {};
  // How far a handoff has come is known from the thread and from the events since; the snapshot may name a step of one that is over.
  if (message.activityType === 'baton.progress') return state;
  if (message.role === 'activity' && message.activityType) return applyActivity(state, runId ?? state.activeRun, message.activityType, (message.content ?? {}) as Record<string, unknown>);
  const isShown = message.subagentRunId === undefined && (message.role === 'user' || message.role === 'assistant') && typeof message.content === 'string';
  if (!isShown || state.items.some((item) => item.id === message.id)) return state;
  const item: MessageItem = { kind: 'message', id: message.id, role: message.role as 'user' | 'assistant', runId, agent, name: message.name, text: message.content as string, attachments: [], at: Date.now(), status: 'done' };
  return message.role === 'user' ? { ...state, items: mergeMessage(state.items, item) } : addOfRun(state, item);
}

function applyActivity(state: ThreadState, runId: string | undefined, type: string, content: Record<string, unknown>): ThreadState {
  if (type === 'baton.progress') return { ...state, progress: content as unknown as Progress };
  if (type === 'baton.files') return applyFiles(state, runId, content as unknown as FilesContent);
  if (type === 'baton.status') return changeRun(state, runId, (run) => ({ ...run, activity: String(content.text ?? '') }));
  return state;
}

/** The files of an answer, whose text came before. */
function applyFiles(state: ThreadState, runId: string | undefined, { message_id: id, parts }: FilesContent): ThreadState {
  if (state.items.some((item) => item.id === id)) return changeItem(state, id, (item) => ({ ...item, attachments: parts }));
  return addOfRun(state, { kind: 'message', id, role: 'assistant', runId, text: '', attachments: parts, at: Date.now(), status: 'done' });
}

function applyCustom(state: ThreadState, runId: string | undefined, name: string, value: unknown, at: number): ThreadState {
  switch (name) {
    case 'baton.handoff': return applyHandoff(state, value as HandoffValue, runId, at);
    case 'baton.usage': return changeRun(state, runId, (run) => applyUsage(run, value as UsageValue));
    case 'baton.approval': return applyRequest(state, value as Approval, runId);
    case 'baton.budget': return changeRun(state, runId, (run) => ({ ...run, budget: (value as BudgetValue).message }));
    case 'baton.turn_restarted': return removeItem(state, (value as { message_id: string }).message_id);
    default: return state;
  }
}

function activeAgentIn(delta: { path: string; value?: unknown }[]): ActiveAgent | undefined {
  return delta.find((change) => change.path === '/activeAgent')?.value as ActiveAgent | undefined;
}
