import type { Agent } from '@/api/useAgents';
import { TextField } from '@/design';
import { count } from '@/lib/format';
import styles from './Agents.module.css';
import { FILTERS, passes, type FilterId } from './filters';
import { useParams } from './useParams';

export function AgentFilters({ agents, filter, shown }: { agents: Agent[]; filter: FilterId; shown: number }) {
  const [params, set] = useParams();
  const active = filter !== 'all' || Boolean(params.get('q'));
  return (
    <div className={styles.toolbar}>
      <TextField className={styles.search} type="search" label="Search agents" hideLabel placeholder="Search by name, description, model or tool" value={params.get('q') ?? ''} onChange={(event) => set({ q: event.target.value })} />
      <div role="group" aria-label="Filter agents" className={styles.segments}>
        {FILTERS.map(({ id, label }) => (
          <button key={id} type="button" className={styles.segment} aria-pressed={filter === id} onClick={() => set({ filter: id === 'all' ? null : id })}>
            {label}<span className={styles.segmentCount}>{agents.filter((agent) => passes(agent, id)).length}</span>
          </button>
        ))}
      </div>
      <p className={styles.shown} role="status">{active ? `${count(shown)} of ${count(agents.length)} shown` : ''}</p>
    </div>
  );
}
