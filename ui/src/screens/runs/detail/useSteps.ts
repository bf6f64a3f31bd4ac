import { useQuery } from '@tanstack/react-query';
import { Problem, sentence } from '@/api/problem';
import { queries } from '@/api/queries';
import type { RunDetail, Steps } from '@/api/types';
import { useMay } from '@/api/useMay';
import { isOver } from '@/run/status';
import { runQueries } from '../queries';

export type StepsState = { state: 'loading' } | { state: 'denied'; reason: string } | { state: 'failed'; reason: string; retry: () => void } | { state: 'ready'; steps: Steps };

/** The recorded steps, for those who may read them. */
export function useSteps(run: RunDetail): StepsState {
  const may = useMay();
  const me = useQuery(queries.me());
  const isAllowed = may('trace:read');
  const { data, error, refetch } = useQuery({ ...runQueries.steps(run.run_id, isOver(run.status)), enabled: isAllowed });
  if (me.isSuccess && !isAllowed) return { state: 'denied', reason: 'The permission trace:read is missing.' };
  if (data) return { state: 'ready', steps: data };
  if (error instanceof Problem && error.status === 403) return { state: 'denied', reason: sentence(error) };
  if (error) return { state: 'failed', reason: sentence(error), retry: () => void refetch() };
  return { state: 'loading' };
}
