import { useCallback } from 'react';
import { useSearchParams } from 'wouter';

/** What of the run is shown, in the URL: the tab, the chosen session and the chosen step. */
export interface RunView { tab: string; session?: string | undefined; step?: string | undefined }

export function useRunView(): [RunView, (change: Partial<RunView>) => void] {
  const [params, setParams] = useSearchParams();
  const view: RunView = { tab: params.get('tab') ?? 'timeline', session: params.get('session') ?? undefined, step: params.get('step') ?? undefined };
  const change = useCallback((next: Partial<RunView>) => {
    setParams((now) => {
      const changed = new URLSearchParams(now);
      for (const [name, value] of Object.entries(next)) {
        if (value) changed.set(name, value);
        else changed.delete(name);
      }
      return changed;
    }, { replace: true });
  }, [setParams]);
  return [view, change];
}
