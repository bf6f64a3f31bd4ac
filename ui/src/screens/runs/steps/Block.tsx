import { useState, type ReactNode } from 'react';
import { Button, CopyButton, cx } from '@/design';
import styles from './StepDetail.module.css';

const LONG = 4_000;

interface BlockProps { title: ReactNode; text: string; isCode?: boolean; isFailed?: boolean; empty?: string }

/** A titled text with a copy button. Texts of more than 4,000 characters are cut until all is asked for. */
export function Block({ title, text, isCode, isFailed, empty }: BlockProps) {
  const [isWhole, setWhole] = useState(false);
  const shown = isWhole || text.length <= LONG ? text : text.slice(0, LONG);
  return (
    <section className={cx(styles.block, isFailed && styles.blockFailed)}>
      <header className={styles.blockHeader}><h3>{title}</h3>{text && <CopyButton text={text} />}</header>
      {text ? <pre className={cx(styles.text, isCode && styles.code)} dir="auto">{shown}</pre> : <p className={styles.none}>{empty}</p>}
      {shown.length < text.length && <Button kind="ghost" size="small" onClick={() => setWhole(true)}>Show all {text.length.toLocaleString('en-US')} characters</Button>}
    </section>
  );
}
