import { visible } from '@/lib/visible';
import { useOverflow } from '@/lib/useOverflow';
import styles from './Approval.module.css';
import { rowsOf } from './rowsOf';

/** What the tool gets, all of it: names and values where that is all there is, else JSON. Long arguments scroll, and say so. */
export function Arguments({ value }: { value: unknown }) {
  const [box, overflows] = useOverflow<HTMLDivElement>();
  const rows = rowsOf(value);
  if (rows?.length === 0) return <p className="faint">Without arguments</p>;
  return (
    <div className={styles.arguments}>
      <div ref={box} className={styles.box} {...(overflows ? { role: 'region', 'aria-label': 'Arguments', tabIndex: 0 } : {})}>
        {rows
          ? <dl className={styles.rows}>{rows.map(([name, text]) => <div key={name}><dt>{visible(name)}</dt><dd dir="auto">{visible(text)}</dd></div>)}</dl>
          : <pre className={styles.json}>{visible(JSON.stringify(value, null, 2))}</pre>}
      </div>
      {overflows && <p className={styles.more}>Scroll to read all arguments.</p>}
    </div>
  );
}
