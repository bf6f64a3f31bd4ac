import { newer, type Approval, type ListedApproval } from '@/approvals/record';
import { addOfRun, removeItem } from './items';
import type { Item, RequestItem, ThreadState } from './state';

/** Adds a request where its run stands now, or replaces it: the same event tells that it was settled. */
export function applyRequest(state: ThreadState, approval: Approval, runId: string | undefined): ThreadState {
  const at = placeOf(state.items, approval.approval_id);
  const known = state.items[at];
  if (known?.kind !== 'request') return runId === undefined ? state : addOfRun(state, itemOf(approval, runId));
  const next = newer(known.approval, approval);
  return next === known.approval ? state : { ...state, items: state.items.with(at, { ...known, approval: next }) };
}

export function removeRequest(state: ThreadState, approvalId: string): ThreadState {
  return removeItem(state, approvalId);
}

/** Adds stored requests by their time, at the end of what their run had said until then. */
export function mergeRequests(items: Item[], approvals: ListedApproval[]): Item[] {
  let merged = items;
  for (const approval of approvals) {
    const known = placeOf(merged, approval.approval_id);
    const old = merged[known];
    if (old?.kind === 'request') {
      merged = merged.with(known, { ...old, approval: newer(old.approval, approval) });
      continue;
    }
    const item = itemOf(approval, approval.run_id);
    // Older messages come with their own page; a request above them would have no question.
    if (!merged.some((other) => other.runId === item.runId)) continue;
    const first = merged.findIndex((other) => other.runId === item.runId);
    const later = merged.findIndex((other, at) => at > first && (other.at > item.at || other.runId !== item.runId));
    merged = merged.toSpliced(later < 0 ? merged.length : later, 0, item);
  }
  return merged;
}

/** The requests of a run that are still open. */
export function openRequests(items: Item[], runId: string): RequestItem[] {
  return items.filter((item): item is RequestItem => item.kind === 'request' && item.runId === runId && item.approval.status === 'pending');
}

function itemOf(approval: Approval, runId: string): RequestItem {
  return { kind: 'request', id: approval.approval_id, runId, approval, at: Date.parse(approval.created_at) };
}

function placeOf(items: Item[], id: string): number {
  return items.findLastIndex((item) => item.id === id);
}
