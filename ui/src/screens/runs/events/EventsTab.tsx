import { Download, Radio } from 'lucide-react';
import { useMemo, useState } from 'react';
import { useMay } from '@/api/useMay';
import { Button, EmptyState, ErrorNote, SelectField, Skeleton, TextField } from '@/design';
import { count } from '@/lib/format';
import { download } from '@/lib/download';
import { toJsonl } from '@/lib/jsonl';
import { EventRow } from './EventRow';
import styles from './EventsTab.module.css';
import { countTypes, filterEntries, TAIL } from './log';
import { useRunEvents } from './useRunEvents';

const STATUS = { connecting: 'Connecting…', open: 'Live', waiting: 'Reconnecting…', closed: 'Complete' };

export function EventsTab({ runId }: { runId: string }) {
  const may = useMay();
  const withTrace = may('trace:read');
  const { entries, status, problem } = useRunEvents(runId, withTrace);
  const [type, setType] = useState('');
  const [text, setText] = useState('');
  const [isWhole, setWhole] = useState(false);
  const types = useMemo(() => countTypes(entries), [entries]);
  const found = useMemo(() => filterEntries(entries, type, text), [entries, type, text]);
  const shown = isWhole ? found : found.slice(-TAIL);
  return (
    <div className={styles.events}>
      <div className={styles.bar}>
        <SelectField label="Type" hideLabel className={styles.type} value={type} onChange={(event) => setType(event.target.value)}>
          <option value="">All types ({count(entries.length)})</option>
          {types.map(([name, number]) => <option key={name} value={name}>{name} ({count(number)})</option>)}
        </SelectField>
        <TextField label="Search events" hideLabel type="search" placeholder="Search events" className={styles.search} value={text} onChange={(event) => setText(event.target.value)} />
        <span className={styles.status}>{STATUS[status]}</span>
        <Button icon={Download} disabled={entries.length === 0} onClick={() => download(`run-${runId}.jsonl`, 'application/x-ndjson', [toJsonl(found.map(({ event }) => event))])}>JSONL</Button>
      </div>
      {!withTrace && <p className={styles.hint}>These are the events for the person. The work of sub-agents needs the permission <code>trace:read</code>.</p>}
      {problem && <ErrorNote>{problem}</ErrorNote>}
      {entries.length === 0 && !problem && status !== 'closed' && <Skeleton rows={6} height={24} />}
      {found.length === 0 && (entries.length > 0 || status === 'closed') && <EmptyState icon={Radio} title={entries.length > 0 ? 'No event matches' : 'No events are kept'} />}
      {shown.length < found.length && <div className={styles.more}><span>The last {count(shown.length)} of {count(found.length)} events.</span><Button size="small" onClick={() => setWhole(true)}>Show all</Button></div>}
      {shown.length > 0 && <ol className={styles.list} aria-label="Events">{shown.map((entry) => <EventRow key={entry.number} entry={entry} />)}</ol>}
    </div>
  );
}
