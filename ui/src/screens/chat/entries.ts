import { isWaiting } from '@/thread/items';
import { openRequests } from '@/thread/requests';
import { isOver } from '@/run/status';
import type { DividerItem, Item, MessageItem, RequestItem, RunState, ThreadState } from '@/thread/state';

/** One row of the conversation. */
export type Entry =
  | { kind: 'message'; key: string; item: MessageItem; run?: RunState | undefined; question?: MessageItem | undefined; isQueued: boolean; closesRun: boolean }
  | { kind: 'divider'; key: string; item: DividerItem }
  | { kind: 'request'; key: string; item: RequestItem }
  | { kind: 'agents'; key: string; run: RunState }
  | { kind: 'state'; key: string; run: RunState; agent: string; question?: MessageItem | undefined; /** Requests of a run that waits. */ open: number };

/** The conversation as rows: sub-agents of a run come before its answer; its progress or error comes after it. */
export function entriesOf(state: ThreadState): Entry[] {
  const places = placesOf(state.items);
  const entries = state.items.flatMap((item, at) => {
    const run = item.runId === undefined ? undefined : state.runs[item.runId];
    const place = item.runId === undefined ? undefined : places.get(item.runId);
    const row = rowOf(state, item, run, place, at);
    const before = run && place?.answer === at ? agentsOf(run) : [];
    const after = run && place?.last === at ? [...(place.answer === undefined ? agentsOf(run) : []), ...stateOf(state, run, place)] : [];
    return [...before, row, ...after];
  });
  const active = state.activeRun === undefined ? undefined : state.runs[state.activeRun];
  // A run that began elsewhere and has said nothing yet.
  return active && !places.has(active.id) ? [...entries, ...agentsOf(active), ...stateOf(state, active, undefined)] : entries;
}

interface Place { question?: MessageItem; answer?: number; lastAnswer?: number; last: number; isStreaming: boolean }

/** Where the rows of each run begin and end. */
function placesOf(items: Item[]): Map<string, Place> {
  const places = new Map<string, Place>();
  items.forEach((item, at) => {
    if (item.runId === undefined) return;
    const place = places.get(item.runId) ?? { last: at, isStreaming: false };
    place.last = at;
    if (item.kind === 'message' && item.role === 'user') place.question ??= item;
    if (item.kind === 'message' && item.role === 'assistant') {
      place.answer ??= at;
      place.lastAnswer = at;
      place.isStreaming = item.status === 'streaming';
    }
    places.set(item.runId, place);
  });
  return places;
}

function rowOf(state: ThreadState, item: Item, run: RunState | undefined, place: Place | undefined, at: number): Entry {
  if (item.kind === 'divider') return { kind: 'divider', key: item.id, item };
  if (item.kind === 'request') return { kind: 'request', key: item.id, item };
  // While it is being sent it is not called queued: that is only said of messages that wait behind a run.
  const isQueued = item.status !== 'sending' && state.activeRun !== undefined && state.activeRun !== item.runId && isWaiting(state, item);
  const closesRun = place?.lastAnswer === at && (!run || isOver(run.status) || run.status === 'waiting');
  return { kind: 'message', key: item.key ?? item.id, item, run, question: place?.question, isQueued, closesRun };
}

function agentsOf(run: RunState): Entry[] {
  return run.subAgents.length > 0 || run.sources.length > 0 ? [{ kind: 'agents', key: `${run.id}:agents`, run }] : [];
}

function stateOf(state: ThreadState, run: RunState, place: Place | undefined): Entry[] {
  const open = run.status === 'waiting' ? openRequests(state.items, run.id).length : 0;
  const entry: Entry = { kind: 'state', key: `${run.id}:state`, run, agent: state.handoff?.to ?? run.agent, question: place?.question, open };
  if (run.isRemoved && run.status === 'cancelled') return [];
  if (run.status === 'running') return place?.isStreaming && !run.activity ? [] : [entry];
  if (run.status === 'queued') return state.activeRun === undefined || state.activeRun === run.id ? [entry] : [];
  return run.status === 'completed' ? [] : [entry];
}
