import { useMemo } from 'react';
import { useSearchState } from '@/lib/useSearchState';
import { isKind, KIND_IDS, type EdgeKind } from './kinds';

/** What is shown, as the address says it. */
export interface GraphState {
  view: 'graph' | 'list';
  search: string;
  /** Only this agent and those it can involve. */
  agent: string | undefined;
  runId: string | undefined;
  selected: string | undefined;
  kinds: ReadonlySet<EdgeKind>;
  set: (changes: Record<string, string | undefined>) => void;
}

export function useGraphState(): GraphState {
  const [params, set] = useSearchState();
  const named = params.get('kinds');
  const kinds = useMemo(() => new Set(named === null ? KIND_IDS : named.split(',').filter(isKind)), [named]);
  const text = (name: string) => params.get(name) || undefined;
  return { view: params.get('view') === 'list' ? 'list' : 'graph', search: params.get('q') ?? '', agent: text('agent'), runId: text('run'), selected: text('node'), kinds, set };
}
