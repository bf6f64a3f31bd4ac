import { useCallback } from 'react';
import { useSearchParams } from 'wouter';

/** Filters in the address: reads parameters, and changes some of them. An empty value removes its parameter. */
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
