import { useEffect, useState } from 'react';
import type { AguiEvent } from '@/api/events';
import { sentence } from '@/api/problem';
import { follow, type StreamStatus } from '@/api/stream';
import { batched } from '@/lib/batch';
import type { Entry } from './log';

export interface EventLog { entries: Entry[]; status: StreamStatus; problem?: string | undefined }

/** Every event of a run from its beginning, live while it goes on. */
export function useRunEvents(runId: string, withTrace: boolean): EventLog {
  const [entries, setEntries] = useState<Entry[]>([]);
  const [status, setStatus] = useState<StreamStatus>('connecting');
  const [problem, setProblem] = useState<string>();
  useEffect(() => {
    setEntries([]);
    setProblem(undefined);
    const batch = batched<AguiEvent>((events) => setEntries((known) => [...known, ...events.map((event, at) => ({ number: known.length + at + 1, event }))]));
    const close = follow({
      path: `/api/v1/runs/${encodeURIComponent(runId)}/events${withTrace ? '?detail=trace' : ''}`,
      after: 0,
      onEvent: batch.push,
      onStatus: setStatus,
      onProblem: (error) => setProblem(sentence(error)),
    });
    return () => { close(); batch.cancel(); };
  }, [runId, withTrace]);
  return { entries, status, problem };
}
