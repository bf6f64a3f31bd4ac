import type { DividerItem, Item, MessageItem, ThreadState } from './state';

/** Replaces one item, or changes nothing if it is not there. */
export function changeItem(state: ThreadState, id: string, change: (item: MessageItem) => MessageItem): ThreadState {
  const at = state.items.findLastIndex((item) => item.id === id);
  const item = state.items[at];
  if (item?.kind !== 'message') return state;
  return { ...state, items: state.items.with(at, change(item)) };
}

export function removeItem(state: ThreadState, id: string): ThreadState {
  const items = state.items.filter((item) => item.id !== id);
  return items.length === state.items.length ? state : { ...state, items };
}

/**
 * Adds what a run said or did: after everything of the same run, so that an answer comes before messages that are queued behind it.
 * A run without any item yet comes last.
 */
export function addOfRun(state: ThreadState, item: Item): ThreadState {
  const last = item.runId === undefined ? -1 : state.items.findLastIndex((other) => other.runId === item.runId);
  if (last >= 0) return { ...state, items: state.items.toSpliced(last + 1, 0, item) };
  // Behind it wait the messages of runs that have not begun.
  const waiting = state.items.findIndex((other) => isWaiting(state, other));
  const at = item.kind === 'message' && item.role === 'user' ? -1 : waiting;
  return { ...state, items: at < 0 ? [...state.items, item] : state.items.toSpliced(at, 0, item) };
}

/** A person's message whose run has not begun. */
export function isWaiting(state: ThreadState, item: Item): boolean {
  if (item.kind !== 'message' || item.role !== 'user') return false;
  if (item.status === 'sending') return true;
  return item.runId !== undefined && state.runs[item.runId]?.status === 'queued';
}

/** Adds a stored message at its place, or completes the one that is there. */
export function mergeMessage(items: Item[], message: MessageItem): Item[] {
  const known = items.findIndex((item) => item.id === message.id);
  const old = items[known];
  if (old?.kind === 'message') {
    // A text that is still growing is newer than what was stored.
    const merged = old.status === 'streaming' ? { ...old, number: message.number } : { ...message, key: old.key };
    return items.with(known, isSame(old, merged) ? old : merged);
  }
  // The stored form of a message whose sending has not been confirmed yet.
  const sent = items.find((item) => item.kind === 'message' && item.status === 'sending' && message.role === 'user' && item.text === message.text);
  if (sent?.kind !== 'message') return items.toSpliced(placeOf(items, message), 0, message);
  const others = items.filter((item) => item !== sent);
  return others.toSpliced(placeOf(others, message), 0, { ...message, key: sent.key ?? sent.id });
}

/** Nothing that is shown differs, so the old object is kept and nothing renders again. */
function isSame(old: MessageItem, next: MessageItem): boolean {
  return old.status === next.status && old.text === next.text && old.number === next.number && old.rating === next.rating && old.runId === next.runId
    && old.attachments.length === next.attachments.length && old.agent === next.agent && old.at === next.at;
}

function placeOf(items: Item[], message: MessageItem): number {
  const number = message.number ?? Infinity;
  const isOwn = (item: Item) => item.runId === message.runId && message.runId !== undefined;
  const isAnswer = message.role === 'user' && items.some((item) => isOwn(item) && item.kind === 'message' && item.role === 'user' && (item.number ?? Infinity) < number);
  // The answer to a question of a run that waited.
  if (isAnswer) return items.findLastIndex((item) => isOwn(item) && item.at <= message.at) + 1;
  const later = items.findIndex((item) => item.kind === 'message' && (item.number ?? Infinity) > number && item.number !== undefined);
  // What a run says follows the message that it is about, whether or not it is stored yet.
  const sameRun = items.findIndex(isOwn);
  if (message.role === 'user' && sameRun >= 0 && (later < 0 || sameRun < later)) return sameRun;
  if (later >= 0) return later;
  // Messages that this tab has not seen stored follow. An answer that came by the stream has no number either, but it was said before.
  const unstored = items.findIndex((item) => item.kind === 'message' && item.role === 'user' && item.number === undefined && !isOwn(item));
  return unstored >= 0 && message.number !== undefined ? unstored : items.length;
}

/** Adds the dividers of old handoffs by their time, unless the events have added them. */
export function mergeDividers(items: Item[], dividers: DividerItem[]): Item[] {
  const oldest = items[0]?.at ?? 0;
  let merged = items;
  for (const divider of dividers) {
    const isKnown = merged.some((item) => item.kind === 'divider' && item.handoffId === divider.handoffId && item.edge === divider.edge);
    if (isKnown || divider.at < oldest) continue;
    const at = merged.findIndex((item) => item.at > divider.at);
    merged = merged.toSpliced(at < 0 ? merged.length : at, 0, divider);
  }
  return merged;
}
