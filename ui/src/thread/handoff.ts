import type { HandoffValue } from '@/api/events';
import { addOfRun } from './items';
import type { DividerItem, ThreadState } from './state';

/** A change of who has the thread: the header's phase, and one divider at each edge. */
export function applyHandoff(state: ThreadState, value: HandoffValue, runId: string | undefined, at: number): ThreadState {
  const handoff = { id: value.handoff_id, phase: value.phase, from: value.from, to: value.to, name: value.display_name };
  switch (value.phase) {
    case 'connecting':
    case 'active': return divide({ ...state, handoff }, value, runId, 'start', at);
    case 'returning': return divide({ ...state, handoff }, value, runId, 'end', at);
    default: return divide({ ...state, handoff: undefined, progress: undefined }, value, runId, 'end', at);
  }
}

/** Starts and ends of one handoff take turns: an edge that is the newest of its handoff is completed, any other is a new one. */
function divide(state: ThreadState, value: HandoffValue, runId: string | undefined, edge: 'start' | 'end', at: number): ThreadState {
  const failed = value.phase === 'error';
  const newest = state.items.findLastIndex((item) => item.kind === 'divider' && item.handoffId === value.handoff_id);
  const old = state.items[newest];
  if (old?.kind === 'divider' && old.edge === edge) {
    // The mode follows the sentence that the handoff began with.
    const told = value.phase === 'active' && old.text ? { mode: value.message || old.mode } : { text: value.message || old.text };
    return { ...state, items: state.items.with(newest, { ...old, failed, ...told }) };
  }
  const agent = edge === 'start' ? value.to : value.from;
  const id = `${value.handoff_id}:${edge}:${runId}`;
  const divider: DividerItem = { kind: 'divider', id, runId, handoffId: value.handoff_id, edge, text: value.message, agent, failed, at };
  return addOfRun(state, divider);
}
