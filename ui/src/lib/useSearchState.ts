import { useCallback } from 'react';
import { useSearchParams } from 'wouter';

/** The parameters of the URL and a function that changes some of them. An empty value removes its parameter. The history gets no entry. */
export function useSearchState(): [URLSearchParams, (changes: Record<string, string | undefined>) => void] {
  const [params, setParams] = useSearchParams();
  const change = useCallback((changes: Record<string, string | undefined>) => {
    setParams((old) => {
      const next = new URLSearchParams(old);
      for (const [name, value] of Object.entries(changes)) {
        if (value) next.set(name, value);
        else next.delete(name);
      }
      return next;
    }, { replace: true });
  }, [setParams]);
  return [params, change];
}
