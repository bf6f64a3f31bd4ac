import { X } from 'lucide-react';
import { useAgents } from '@/api/useAgents';
import { Button } from '@/design';
import styles from './FilterBar.module.css';
import { chips, type Filters } from './filters';

interface FilterChipsProps { filters: Filters; change: (change: Partial<Filters>) => void; titleOf: (threadId: string) => string }

export function FilterChips({ filters, change, titleOf }: FilterChipsProps) {
  const { face } = useAgents();
  const shown = chips(filters, (id) => face(id).name, titleOf);
  if (shown.length === 0) return null;
  const clear = () => change({ status: undefined, agent: undefined, user: undefined, thread: undefined, since: undefined, errors: undefined });
  return (
    <div role="group" aria-label="Active filters" className={styles.chips}>
      {shown.map(({ key, label, value }) => (
        <button key={key} type="button" className={styles.chip} onClick={() => change({ [key]: undefined })} aria-label={`Remove filter ${label}: ${value}`}>
          <span className={styles.chipLabel}>{label}</span>
          <span className={styles.chipValue} dir="auto">{value}</span>
          <X size={13} aria-hidden />
        </button>
      ))}
      {shown.length > 1 && <Button kind="ghost" size="small" onClick={clear}>Clear all</Button>}
    </div>
  );
}
