import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useMemo, useState } from 'react';
import type { AguiEvent } from '@/api/events';
import { follow } from '@/api/stream';
import { batched } from '@/lib/batch';
import { runQuery } from '@/run/queries';
import { isOver } from '@/run/status';
import { applyEvent, merged, visitsOf, type Visit } from './path';

const NONE: Visit[] = [];

/** The path of a run, followed live until it ends. */
export function useRunPath(runId: string | undefined) {
  const client = useQueryClient();
  const { data: run, error } = useQuery({ ...runQuery(runId ?? ''), enabled: Boolean(runId), refetchInterval: false });
  const [live, setLive] = useState<{ runId: string; visits: Visit[] }>();
  const isRunning = run !== undefined && !isOver(run.status);
  useEffect(() => {
    if (!runId || !isRunning) return;
    const events = batched<AguiEvent>((list) => {
      setLive((old) => {
        const before = old?.runId === runId ? old.visits : NONE;
        const visits = list.reduce(applyEvent, before);
        return visits === before && old ? old : { runId, visits };
      });
      if (list.some((event) => event.type === 'RUN_FINISHED' || event.type === 'RUN_ERROR')) void client.invalidateQueries({ queryKey: runQuery(runId).queryKey });
    });
    const close = follow({ path: `/api/v1/runs/${runId}/events`, after: 0, onEvent: events.push });
    return () => {
      close();
      events.cancel();
    };
  }, [client, runId, isRunning]);
  const visits = useMemo(() => {
    if (!runId || !run) return NONE;
    const stored = visitsOf(run);
    return isRunning && live?.runId === runId ? merged(stored, live.visits) : stored;
  }, [runId, run, isRunning, live]);
  return { run: runId ? run : undefined, error: runId ? error : null, visits, isRunning };
}
