import { useCallback, useMemo } from 'react';
import { useSearchParams } from 'wouter';
import { readFilters, writeFilters, type Filters } from './filters';

/** The filters of the URL, and a function that changes some of them. Typing replaces the entry in the history. */
export function useFilters(): [Filters, (change: Partial<Filters>) => void] {
  const [params, setParams] = useSearchParams();
  const filters = useMemo(() => readFilters(params), [params]);
  const change = useCallback((next: Partial<Filters>) => {
    setParams((now) => writeFilters({ ...readFilters(now), ...next }), { replace: 'text' in next });
  }, [setParams]);
  return [filters, change];
}
