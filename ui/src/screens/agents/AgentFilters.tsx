import type { Agent } from '@/api/useAgents';
import { Segmented, TextField } from '@/design';
import { count } from '@/lib/format';
import { useSearchState } from '@/lib/useSearchState';
import styles from './Agents.module.css';
import { FILTERS, passes, type FilterId } from './filters';

export function AgentFilters({ agents, filter, shown }: { agents: Agent[]; filter: FilterId; shown: number }) {
  const [params, set] = useSearchState();
  const active = filter !== 'all' || Boolean(params.get('q'));
  // What no agent is needs no filter.
  const present = FILTERS.filter(({ id }) => id === 'all' || id === filter || agents.some((agent) => passes(agent, id)));
  const options = present.map(({ id, label }) => ({ value: id, label: `${label} (${agents.filter((agent) => passes(agent, id)).length})` }));
  return (
    <div className={styles.toolbar}>
      <TextField className={styles.search} type="search" label="Search agents" hideLabel placeholder="Search by name, description, model or tool" value={params.get('q') ?? ''} onChange={(event) => set({ q: event.target.value })} />
      {present.length > 1 && <Segmented label="Filter agents" options={options} value={filter} onChange={(id) => set({ filter: id === 'all' ? undefined : id })} />}
      <p className={styles.shown} role="status">{active ? `${count(shown)} of ${count(agents.length)} shown` : ''}</p>
    </div>
  );
}
