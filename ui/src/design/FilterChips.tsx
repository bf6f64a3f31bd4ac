import { X } from 'lucide-react';
import type { ReactNode } from 'react';
import styles from './FilterChips.module.css';

export interface FilterChip { key: string; name: string; value: ReactNode; onRemove: () => void }

/** The filters that apply, each with a button that removes it. */
export function FilterChips({ chips, onClear }: { chips: FilterChip[]; onClear?: () => void }) {
  if (chips.length === 0) return null;
  return (
    <ul aria-label="Filters" className={styles.chips}>
      {chips.map((chip) => (
        <li key={chip.key} className={styles.chip}>
          <span className={styles.name}>{chip.name}</span>
          <span className={styles.value} dir="auto">{chip.value}</span>
          <button type="button" className={styles.remove} aria-label={`Remove filter ${chip.name}`} title="Remove filter" onClick={chip.onRemove}><X size={12} aria-hidden /></button>
        </li>
      ))}
      {onClear && chips.length > 1 && <li><button type="button" className={styles.clear} onClick={onClear}>Clear all</button></li>}
    </ul>
  );
}
