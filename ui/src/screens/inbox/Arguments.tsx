import { useState } from 'react';
import { Button } from '@/design';
import { visible } from '@/lib/visible';
import styles from './Inbox.module.css';
import { rowsOf } from './rowsOf';

/** Long arguments are folded, never cut: the whole call has to be readable before it is approved. */
const FOLD = 600;

/** What the tool would get: names and values where that is all there is, else JSON. */
export function Arguments({ value }: { value: unknown }) {
  const [isWhole, setWhole] = useState(false);
  const rows = rowsOf(value);
  const size = JSON.stringify(value)?.length ?? 0;
  if (rows?.length === 0) return <p className="faint">Without arguments</p>;
  return (
    <div className={styles.arguments}>
      <div className={size > FOLD && !isWhole ? styles.folded : undefined}>
        {rows
          ? <dl className={styles.rows}>{rows.map(([name, text]) => <div key={name}><dt>{visible(name)}</dt><dd dir="auto">{visible(text)}</dd></div>)}</dl>
          : <pre className={styles.json}>{visible(JSON.stringify(value, null, 2))}</pre>}
      </div>
      {size > FOLD && <Button kind="ghost" size="small" aria-expanded={isWhole} onClick={() => setWhole(!isWhole)}>{isWhole ? 'Show less' : 'Show all arguments'}</Button>}
    </div>
  );
}
