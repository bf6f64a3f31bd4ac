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

function divide(state: ThreadState, value: HandoffValue, runId: string | undefined, edge: 'start' | 'end', at: number): ThreadState {
  const id = `${value.handoff_id}:${edge}:${runId}`;
  const failed = value.phase === 'error';
  const known = state.items.findIndex((item) => item.id === id);
  const old = state.items[known];
  if (old?.kind === 'divider') {
    return { ...state, items: state.items.with(known, { ...old, failed, text: old.text || value.message }) };
  }
  const agent = edge === 'start' ? value.to : value.from;
  const divider: DividerItem = { kind: 'divider', id, runId, handoffId: value.handoff_id, edge, text: value.message, agent, failed, at };
  return addOfRun(state, divider);
}
