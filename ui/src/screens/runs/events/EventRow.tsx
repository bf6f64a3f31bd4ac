import { ChevronRight } from 'lucide-react';
import { memo, useState } from 'react';
import { CopyButton, cx } from '@/design';
import styles from './EventsTab.module.css';
import { summary, typeOf, type Entry } from './log';

export const EventRow = memo(function EventRow({ entry: { number, event } }: { entry: Entry }) {
  const [isOpen, setOpen] = useState(false);
  const isError = event.type === 'RUN_ERROR' || event.type === 'SUBAGENT_ERROR';
  return (
    <li className={styles.event}>
      <button type="button" className={styles.row} aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <ChevronRight size={13} aria-hidden className={cx(styles.chevron, isOpen && styles.turned)} />
        <span className={styles.number}>{number}</span>
        <span className={styles.time}>{event.timestamp ? clock(event.timestamp) : ''}</span>
        <span className={cx(styles.name, isError && styles.error)}>{typeOf(event)}</span>
        <span className={styles.agent}>{event.metadata?.baton?.agent}</span>
        <span className={styles.summary} dir="auto">{summary(event)}</span>
      </button>
      {isOpen && <div className={styles.json}><div className={styles.copy}><CopyButton text={() => JSON.stringify(event, null, 2)} label="Copy JSON" /></div><pre>{JSON.stringify(event, null, 2)}</pre></div>}
    </li>
  );
});

const CLOCK = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit', fractionalSecondDigits: 3 });

function clock(timestamp: number): string {
  return CLOCK.format(timestamp);
}
