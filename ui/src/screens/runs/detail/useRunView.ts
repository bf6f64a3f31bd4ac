import { useSearchState } from '@/lib/useSearchState';

/** What of the run is shown: the tab, the chosen session and the chosen step. */
export interface RunView { tab: string; session?: string | undefined; step?: string | undefined }

/** The view as it is in the URL. */
export function useRunView(): [RunView, (change: Partial<RunView>) => void] {
  const [params, change] = useSearchState();
  const view = { tab: params.get('tab') ?? 'timeline', session: params.get('session') ?? undefined, step: params.get('step') ?? undefined };
  return [view, change];
}
