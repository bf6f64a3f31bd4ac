import { useAgents } from '@/api/useAgents';
import { FilterChips, Segmented, SelectField, TextField, type FilterChip } from '@/design';
import styles from './Graph.module.css';
import { KIND_IDS, KINDS } from './kinds';
import { Legend } from './Legend';
import type { Model } from './model';
import { RunPicker } from './RunPicker';
import type { GraphState } from './useGraphState';

const VIEWS: { value: GraphState['view']; label: string }[] = [{ value: 'graph', label: 'Graph' }, { value: 'list', label: 'List' }];

export function GraphFilters({ state, model, shown }: { state: GraphState; model: Model; shown: Model }) {
  const { view, search, agent, runId, kinds, set } = state;
  const { face } = useAgents();
  const hidden = KIND_IDS.filter((kind) => !kinds.has(kind) && shown.edges.some((edge) => edge.kind === kind));
  const chips: FilterChip[] = [
    ...(agent ? [{ key: 'agent', name: 'Only from', value: face(agent).name, onRemove: () => set({ agent: undefined }) }] : []),
    ...(hidden.length > 0 ? [{ key: 'kinds', name: 'Hidden', value: hidden.map((kind) => KINDS[kind].label).join(', '), onRemove: () => set({ kinds: undefined }) }] : []),
    ...(search ? [{ key: 'q', name: 'Search', value: search, onRemove: () => set({ q: undefined }) }] : []),
  ];
  return (
    <div className={styles.filters}>
      <div className={styles.fields}>
        <TextField className={styles.search} type="search" label="Find an agent" placeholder="Name or description" value={search} onChange={(event) => set({ q: event.target.value })} />
        <SelectField className={styles.picker} label="Only from" value={agent ?? ''} onChange={(event) => set({ agent: event.target.value, node: undefined })}>
          <option value="">All agents</option>
          {model.nodes.filter((node) => !node.missing).map((node) => <option key={node.id} value={node.id}>{node.display_name}</option>)}
        </SelectField>
        <RunPicker runId={runId} onChange={(run) => set({ run })} />
        <div className={styles.views}><Segmented label="View" options={VIEWS} value={view} onChange={(next) => set({ view: next === 'list' ? 'list' : undefined })} /></div>
      </div>
      <Legend edges={shown.edges} kinds={kinds} onChange={(next) => set({ kinds: hasAll(next, shown) ? undefined : next.join(',') || 'none' })} />
      <FilterChips chips={chips} onClear={() => set({ agent: undefined, kinds: undefined, q: undefined })} />
    </div>
  );
}

function hasAll(kinds: string[], { edges }: Model): boolean {
  return edges.every((edge) => kinds.includes(edge.kind));
}
