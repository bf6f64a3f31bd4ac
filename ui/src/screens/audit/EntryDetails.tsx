import { Link } from 'wouter';
import { Button, CopyButton } from '@/design';
import { absolute } from '@/lib/format';
import { placeOf, type Entry, type FilterName } from './data';
import styles from './Audit.module.css';

/** The whole entry: its ids, its place in the chain, and its details as JSON. */
export function EntryDetails({ entry, onFilter }: { entry: Entry; onFilter: (name: FilterName, value: string) => void }) {
  const { thread_id, run_id, trace_id, address, detail } = entry;
  const json = () => JSON.stringify(entry, null, 2);
  return (
    <div className={styles.details}>
      <dl className={styles.facts}>
        <dt>Entry</dt><dd className="tabular">{placeOf(entry)}, {absolute(new Date(entry.at))} <span className="faint">({entry.at})</span></dd>
        <dt>Tenant</dt><dd>{entry.tenant_id}</dd>
        {thread_id && <><dt>Thread</dt><dd><Link href={`/threads/${thread_id}`}><code>{thread_id}</code></Link> <Button kind="ghost" size="small" onClick={() => onFilter('thread_id', thread_id)}>Only this thread</Button></dd></>}
        {run_id && <><dt>Run</dt><dd><Link href={`/runs/${run_id}`}><code>{run_id}</code></Link></dd></>}
        {address && <><dt>Address</dt><dd><code>{address}</code></dd></>}
        {trace_id && <><dt>Trace</dt><dd><code>{trace_id}</code> <CopyButton text={trace_id} label="Copy the trace id" /></dd></>}
        <dt>Hash</dt><dd><code>{entry.hash}</code></dd>
      </dl>
      <div className={styles.json}>
        <div className={styles.jsonHeader}><strong>Details</strong><CopyButton text={json} label="Copy the entry as JSON" /></div>
        {detail === undefined || detail === null ? <p className="faint">This entry has no further details.</p> : <pre className={styles.code}>{JSON.stringify(detail, null, 2)}</pre>}
      </div>
    </div>
  );
}
