import type { ReactNode } from 'react';
import { Button, Card, cx } from '@/design';
import { amountOf, type Line, type Measure } from './data';
import styles from './Breakdown.module.css';

const MOST = 6;
/** The width of the part without a price, with its gap. */
const UNKNOWN = 33;

interface BreakdownProps {
  title: string;
  lines: Line[];
  measure: Measure;
  /** How the key of a line is shown. */
  name: (key: string) => ReactNode;
  /** Goes to the table with all lines. */
  onShowTable: () => void;
}

/** The largest consumers as bars from zero with their numbers beside them. */
export function Breakdown({ title, lines, measure, name, onShowTable }: BreakdownProps) {
  const sorted = lines.map((line) => ({ key: line.key, amount: amountOf(line.usage, measure) })).sort((a, b) => b.amount.value - a.amount.value || Number(b.amount.isPartial) - Number(a.amount.isPartial));
  const most = Math.max(0, ...sorted.map((line) => line.amount.value)) || 1;
  // Room for the hatched part beside the longest bar, so that all bars keep one scale.
  const room = sorted.some((line) => line.amount.isPartial) ? UNKNOWN : 0;
  const hidden = sorted.length - MOST;
  return (
    <Card className={styles.card}>
      <header className={styles.header}><h2>{title}</h2><Button kind="ghost" size="small" onClick={onShowTable}>Table</Button></header>
      <ul className={styles.bars}>
        {sorted.slice(0, MOST).map(({ key, amount }) => (
          <li key={key} className={styles.line}>
            <span className={styles.name}>{name(key)}</span>
            <span className={cx(styles.value, amount.isPartial && styles.partial)}>{amount.label}</span>
            <span className={styles.track} aria-hidden>
              {amount.value > 0 && <span className={styles.bar} style={{ width: `calc((100% - ${room}px) * ${amount.value / most})` }} />}
              {amount.isPartial && <span className={styles.unknown} title="Some models have no price" />}
            </span>
          </li>
        ))}
      </ul>
      {hidden > 0 && <p className="faint">{hidden} more in the table</p>}
    </Card>
  );
}
