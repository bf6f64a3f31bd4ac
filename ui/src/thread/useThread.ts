import { useCallback, useEffect, useReducer, useRef, useState } from 'react';
import type { AguiEvent } from '@/api/events';
import { Problem } from '@/api/problem';
import { follow, type StreamStatus } from '@/api/stream';
import type { ThreadContext } from '@/api/types';
import { batched } from '@/lib/batch';
import { loadNewest, loadOlder, loadThread } from './load';
import { reduce, type Action } from './reducer';
import { emptyThread, type ThreadState } from './state';

export interface ThreadHandle {
  state: ThreadState;
  /** As it was when the page was loaded; absent for a new thread. */
  thread?: ThreadContext | undefined;
  load: 'loading' | 'ready' | 'missing' | 'failed';
  problem?: unknown;
  connection: StreamStatus;
  dispatch: (action: Action) => void;
  /** Begins to follow a thread that had no messages before. */
  begin: () => void;
  reload: () => void;
  /** `onLoaded` is called before the messages are added. */
  loadOlder: (onLoaded?: () => void) => Promise<void>;
  /** When the last event came, in milliseconds; 0 before the first. */
  lastEventAt: () => number;
}

/** One thread: its history, then every event after it. A thread that `isNew` has no history and is followed after `begin`. */
export function useThread(threadId: string, detail: 'person' | 'trace', isNew = false): ThreadHandle {
  const [state, dispatch] = useReducer(reduce, emptyThread);
  const [phase, setPhase] = useState<Phase>({ load: isNew ? 'ready' : 'loading' });
  const [connection, setConnection] = useState<StreamStatus>('closed');
  const [generation, setGeneration] = useState(0);
  /** Followed from this number on; `undefined` while there is nothing to follow. */
  const [after, setAfter] = useState<number>();
  const runsCursor = useRef<string>(undefined);
  const lastEvent = useRef(0);
  // A thread is new only when it is opened: once it has messages, a reload reads them.
  const [skipsLoading] = useState(isNew);

  useEffect(() => {
    if (skipsLoading && generation === 0) return;
    let isCurrent = true;
    dispatch({ type: 'reset' });
    setAfter(undefined);
    setPhase({ load: 'loading' });
    loadThread(threadId).then(
      (found) => {
        if (!isCurrent) return;
        if (!found) return setPhase({ load: 'missing' });
        dispatch({ type: 'history', history: found.history });
        runsCursor.current = found.runsCursor;
        setAfter(found.thread.last_seq);
        setPhase({ load: 'ready', thread: found.thread });
      },
      (problem: unknown) => isCurrent && setPhase({ load: 'failed', problem }),
    );
    return () => { isCurrent = false; };
  }, [threadId, generation, skipsLoading]);

  const reload = useCallback(() => setGeneration((generation) => generation + 1), []);
  useEffect(() => {
    if (after === undefined) return;
    const seen = () => { lastEvent.current = Date.now(); };
    const fail = (problem: Problem) => setPhase(problem.code === 'thread_not_found' ? { load: 'missing' } : { load: 'failed', problem });
    return followThread({ threadId, detail, after, dispatch, setConnection, reload, seen, fail });
  }, [threadId, detail, after, reload]);

  const items = useRef(state.items);
  items.current = state.items;
  const older = useCallback(async (onLoaded?: () => void) => {
    const first = items.current.find((item) => item.kind === 'message' && item.number !== undefined);
    if (first?.kind !== 'message' || !first.number) return;
    const page = await loadOlder(threadId, first.number, runsCursor.current);
    runsCursor.current = page.runsCursor;
    onLoaded?.();
    dispatch({ type: 'history', history: page.history });
  }, [threadId]);
  const begin = useCallback(() => setAfter((known) => known ?? 0), []);
  const lastEventAt = useCallback(() => lastEvent.current, []);
  return { state, ...phase, connection, dispatch, begin, reload, loadOlder: older, lastEventAt };
}

type Phase = Pick<ThreadHandle, 'load' | 'thread' | 'problem'>;

interface FollowThread {
  threadId: string;
  detail: 'person' | 'trace';
  after: number;
  dispatch: (action: Action) => void;
  setConnection: (status: StreamStatus) => void;
  reload: () => void;
  seen: () => void;
  fail: (problem: Problem) => void;
}

function followThread({ threadId, detail, after, dispatch, setConnection, reload, seen, fail }: FollowThread): () => void {
  const batch = batched<AguiEvent>((events) => {
    seen();
    dispatch({ type: 'events', events });
    // A person's message is no event: one from another tab, or from a program, is read when its run begins.
    if (events.some((event) => event.type === 'RUN_STARTED')) {
      void loadNewest(threadId).then((history) => dispatch({ type: 'history', history }), () => undefined);
    }
  });
  const close = follow({
    path: `/api/v1/threads/${threadId}/events?detail=${detail}`,
    after,
    onEvent: batch.push,
    onStatus: setConnection,
    // A position that the server does not know: the store was replaced, so everything is read again.
    onProblem: (problem) => (problem.code === 'cursor_expired' ? reload() : fail(problem)),
  });
  return () => {
    close();
    batch.cancel();
  };
}
