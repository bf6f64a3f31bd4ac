import { Search } from 'lucide-react';
import { useState, type FormEvent } from 'react';
import { useAgents } from '@/api/useAgents';
import { Button, FilterChips, SelectField, TextField } from '@/design';
import { statusWord } from '@/run/RunStatus';
import styles from './FilterBar.module.css';
import { chips, NO_FILTERS, PERIODS, STATUSES, type Filters, type Period } from './filters';

interface FilterBarProps { filters: Filters; change: (change: Partial<Filters>) => void; mayFilterUsers: boolean; titleOf: (threadId: string) => string }

export function FilterBar({ filters, change, mayFilterUsers, titleOf }: FilterBarProps) {
  const { agents, face } = useAgents();
  const applied = chips(filters, (id) => face(id).name, titleOf).map(({ key, label, value }) => ({ key, name: label, value, onRemove: () => change({ [key]: undefined }) }));
  return (
    <div className={styles.filters}>
      <div className={styles.bar} role="search" aria-label="Filter runs">
        <div className={styles.search}>
          <Search size={15} aria-hidden className={styles.searchIcon} />
          <TextField label="Search loaded runs" hideLabel type="search" placeholder="Search loaded runs" value={filters.text ?? ''} onChange={(event) => change({ text: event.target.value })} />
        </div>
        <SelectField label="Status" hideLabel className={styles.select} value={filters.status ?? ''} onChange={(event) => change({ status: (event.target.value || undefined) as Filters['status'] })}>
          <option value="">Any status</option>
          {STATUSES.map((status) => <option key={status} value={status}>{statusWord(status)}</option>)}
        </SelectField>
        <SelectField label="Agent" hideLabel className={styles.select} value={filters.agent ?? ''} onChange={(event) => change({ agent: event.target.value || undefined })}>
          <option value="">Any agent</option>
          {filters.agent && !agents.some(({ id }) => id === filters.agent) && <option value={filters.agent}>{filters.agent}</option>}
          {agents.map(({ id, display_name }) => <option key={id} value={id}>{display_name}</option>)}
        </SelectField>
        <SelectField label="Time" hideLabel className={styles.select} value={filters.since ?? ''} onChange={(event) => change({ since: (event.target.value || undefined) as Period | undefined })}>
          <option value="">All time</option>
          {Object.entries(PERIODS).map(([period, name]) => <option key={period} value={period}>{name}</option>)}
        </SelectField>
        {mayFilterUsers && <UserFilter key={filters.user} user={filters.user} onChange={(user) => change({ user })} />}
        <label className={styles.errors}>
          <input type="checkbox" checked={filters.errors ?? false} onChange={(event) => change({ errors: event.target.checked || undefined })} />
          Errors only
        </label>
      </div>
      <FilterChips chips={applied} onClear={() => change(NO_FILTERS)} />
    </div>
  );
}

/** A user id is typed in full and applied with Enter: there is no list of users to choose from. */
function UserFilter({ user, onChange }: { user: string | undefined; onChange: (user: string | undefined) => void }) {
  const [typed, setTyped] = useState(user ?? '');
  const submit = (event: FormEvent) => {
    event.preventDefault();
    onChange(typed.trim() || undefined);
  };
  const isChanged = typed.trim() !== (user ?? '');
  return (
    <form className={styles.user} onSubmit={submit}>
      <TextField label="User" hideLabel placeholder="User id" value={typed} onChange={(event) => setTyped(event.target.value)} />
      {isChanged && <Button type="submit" size="small">Apply</Button>}
    </form>
  );
}
