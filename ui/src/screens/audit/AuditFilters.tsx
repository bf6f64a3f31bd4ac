import { Plus } from 'lucide-react';
import { useId, useState, type SyntheticEvent } from 'react';
import { Button, FilterChips, Segmented, SelectField, TextField, type FilterChip } from '@/design';
import { absolute } from '@/lib/format';
import { ACTIONS, FILTERS, PERIODS, periodOf, type FilterName } from './data';
import styles from './Audit.module.css';

interface AuditFiltersProps { params: URLSearchParams; onChange: (changes: Record<string, string | undefined>) => void; actors: string[] }

/** The period, one more filter, and those that apply. */
export function AuditFilters({ params, onChange, actors }: AuditFiltersProps) {
  const since = params.get('since');
  const period = periodOf(since);
  const chips: FilterChip[] = FILTERS.flatMap(({ name, label }) => {
    const value = params.get(name);
    return value ? [{ key: name, name: label, value, onRemove: () => onChange({ [name]: undefined }) }] : [];
  });
  if (since && !period) chips.push({ key: 'since', name: 'Since', value: absolute(new Date(since)), onRemove: () => onChange({ since: undefined }) });
  const clear = () => onChange({ actor: undefined, action: undefined, thread_id: undefined });
  return (
    <div className={styles.filters}>
      <div className={styles.filterRow}>
        <Segmented label="Period" options={PERIODS} value={period ?? ('' as 'all')} onChange={(value) => onChange({ since: value })} />
        <AddFilter actors={actors} onAdd={(name, value) => onChange({ [name]: value })} />
      </div>
      <FilterChips chips={chips} onClear={clear} />
    </div>
  );
}

function AddFilter({ actors, onAdd }: { actors: string[]; onAdd: (name: FilterName, value: string) => void }) {
  const [name, setName] = useState<FilterName>('actor');
  const [value, setValue] = useState('');
  const list = useId();
  const kind = FILTERS.find((one) => one.name === name) ?? FILTERS[0];
  const problem = name === 'thread_id' && value && !UUID.test(value.trim()) ? 'A thread id is a UUID' : undefined;
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    if (!value.trim() || problem) return;
    onAdd(name, value.trim());
    setValue('');
  };
  const suggestions = name === 'action' ? ACTIONS : name === 'actor' ? actors : [];
  return (
    <form className={styles.addFilter} onSubmit={submit} aria-label="Add a filter">
      <SelectField label="Filter by" hideLabel value={name} onChange={(event) => setName(event.target.value as FilterName)}>
        {FILTERS.map((one) => <option key={one.name} value={one.name}>{one.label}</option>)}
      </SelectField>
      <TextField label={kind.label} hideLabel placeholder={kind.placeholder} value={value} onChange={(event) => setValue(event.target.value)} error={problem} list={list} className={styles.value} autoComplete="off" spellCheck={false} />
      <datalist id={list}>{suggestions.map((one) => <option key={one} value={one} />)}</datalist>
      <Button type="submit" icon={Plus} disabled={!value.trim() || Boolean(problem)}>Add filter</Button>
    </form>
  );
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
