import { createParser } from 'eventsource-parser';
import type { AguiEvent } from './events';
import { Problem } from './problem';
import { authorization, reject } from './session';

export type StreamStatus = 'connecting' | 'open' | 'waiting' | 'closed';

interface StreamOptions {
  /** The path without `after`. */
  path: string;
  /** The number of the last event that is known. */
  after: number;
  onEvent: (event: AguiEvent) => void;
  onStatus?: (status: StreamStatus) => void;
  /** The stream cannot go on: the thread is gone, the permission is missing, or the position is unknown. */
  onProblem?: (problem: Problem) => void;
}

const FIRST_DELAY = 500;
const MAX_DELAY = 10_000;
/** The server sends a comment every 15 s; after this long the connection is taken for dead. */
const SILENCE = 40_000;
/** Browsers open six connections to a server, over all tabs together. A tab that is not looked at gives its own back after this long. */
const HIDDEN = 10_000;

/**
 * Follows a stream of events until it is closed. A cut connection is opened again after the last number, with back-off; nothing is lost
 * or repeated, because the server sends everything after that number. A hidden tab catches up when it is shown again. Returns the
 * function that closes it.
 */
export function follow(options: StreamOptions): () => void {
  const closed = new AbortController();
  void loop(options, closed.signal);
  return () => closed.abort();
}

async function loop(options: StreamOptions, closed: AbortSignal): Promise<void> {
  const status = (next: StreamStatus) => closed.aborted || options.onStatus?.(next);
  let after = options.after;
  let delay = FIRST_DELAY;
  while (!closed.aborted) {
    status('connecting');
    try {
      const ended = await connect(options, after, closed, () => {
        delay = FIRST_DELAY;
        status('open');
      }, (seq) => (after = seq));
      if (ended) return status('closed') as void;
    } catch (error) {
      if (closed.aborted) return;
      if (error instanceof Problem && error.status < 500 && error.status !== 429 && error.status !== 408) {
        if (error.status === 401) reject();
        status('closed');
        return options.onProblem?.(error);
      }
    }
    if (document.hidden) {
      await shown(closed);
      continue;
    }
    status('waiting');
    await pause(delay * (0.75 + Math.random() / 2), closed);
    delay = Math.min(MAX_DELAY, delay * 2);
  }
}

/** One connection. True when the server said that nothing follows (204). */
async function connect(options: StreamOptions, after: number, closed: AbortSignal, opened: () => void, seen: (seq: number) => void): Promise<boolean> {
  const cut = new AbortController();
  const signal = AbortSignal.any([closed, cut.signal]);
  const url = `${options.path}${options.path.includes('?') ? '&' : '?'}after=${after}`;
  const response = await fetch(url, { headers: { Accept: 'text/event-stream', ...authorization() }, signal });
  if (response.status === 204) return true;
  if (!response.ok || !response.body) throw await Problem.of(response);
  opened();
  const parser = createParser({
    onEvent: ({ id, data }) => {
      if (closed.aborted) return;
      options.onEvent(JSON.parse(data) as AguiEvent);
      const seq = Number(id);
      if (id && Number.isFinite(seq)) seen(seq);
    },
  });
  const decoder = new TextDecoder();
  const reader = response.body.getReader();
  const stopWatching = whenHidden(() => cut.abort());
  let timer = setTimeout(() => cut.abort(), SILENCE);
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return false;
      clearTimeout(timer);
      timer = setTimeout(() => cut.abort(), SILENCE);
      parser.feed(decoder.decode(value, { stream: true }));
    }
  } finally {
    clearTimeout(timer);
    stopWatching();
  }
}

/** Calls back once the tab has been hidden for a while. Returns the function that stops that. */
function whenHidden(leave: () => void): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const change = () => {
    clearTimeout(timer);
    timer = document.hidden ? setTimeout(leave, HIDDEN) : undefined;
  };
  change();
  document.addEventListener('visibilitychange', change);
  return () => {
    clearTimeout(timer);
    document.removeEventListener('visibilitychange', change);
  };
}

/** Waits until the tab is shown, but not once it is closed. */
function shown(closed: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      if (document.hidden && !closed.aborted) return;
      document.removeEventListener('visibilitychange', done);
      closed.removeEventListener('abort', done);
      resolve();
    };
    document.addEventListener('visibilitychange', done);
    closed.addEventListener('abort', done);
    done();
  });
}

/** Waits, but not once it is closed; coming back online ends the wait early. */
function pause(milliseconds: number, closed: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      removeEventListener('online', done);
      closed.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, milliseconds);
    addEventListener('online', done);
    closed.addEventListener('abort', done, { once: true });
  });
}
