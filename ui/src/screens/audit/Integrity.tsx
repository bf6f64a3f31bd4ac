import { ShieldCheck } from 'lucide-react';
import { sentence } from '@/api/problem';
import { Button, CopyButton, ErrorNote, Notice } from '@/design';
import { count, plural } from '@/lib/format';
import type { Verdict } from './data';
import styles from './Audit.module.css';

interface IntegrityProps { verdict: Verdict | undefined; error: unknown; onDismiss: () => void }

/** Whether the chain of hashes holds, or where it breaks. */
export function Integrity({ verdict, error, onDismiss }: IntegrityProps) {
  const dismiss = <Button size="small" kind="ghost" onClick={onDismiss}>Dismiss</Button>;
  if (error) return <ErrorNote title="The check could not be made." action={dismiss}>{sentence(error)}</ErrorNote>;
  if (!verdict) return null;
  if (verdict.verdict === 'broken') return <ErrorNote title={`The audit trail is broken at entry ${count(verdict.number)}.`} action={dismiss}>{verdict.reason}</ErrorNote>;
  return (
    <Notice tone="success" action={dismiss}>
      <span className={styles.verdict}>
        <ShieldCheck size={16} aria-hidden />
        <span><strong>The audit trail is intact.</strong> {plural(verdict.entries, 'entry', 'entries')} checked.</span>
        {verdict.head && <span className={styles.head}>Head <code title={verdict.head}>{verdict.head.slice(0, 12)}…</code><CopyButton text={verdict.head} label="Copy the head hash, to compare it later" /></span>}
      </span>
    </Notice>
  );
}
