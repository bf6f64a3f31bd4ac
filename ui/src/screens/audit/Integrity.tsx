import { ShieldCheck } from 'lucide-react';
import { sentence } from '@/api/problem';
import { Button, CopyButton, ErrorNote, Notice } from '@/design';
import { absolute, count, plural } from '@/lib/format';
import { placeOf, type Verdict } from './data';
import styles from './Audit.module.css';

interface IntegrityProps { verdict: Verdict | undefined; error: unknown; onDismiss: () => void }

/** Whether the trail is as it was written, or where it is not. */
export function Integrity({ verdict, error, onDismiss }: IntegrityProps) {
  const dismiss = <Button size="small" kind="ghost" onClick={onDismiss}>Dismiss</Button>;
  if (error) return <ErrorNote title="The check could not be made." action={dismiss}>{sentence(error)}</ErrorNote>;
  if (!verdict) return null;
  if (verdict.verdict === 'broken') return <ErrorNote title={`The audit trail is broken at ${brokenPlace(verdict)}.`} action={dismiss}>{verdict.reason}</ErrorNote>;
  const { seal } = verdict;
  return (
    <Notice tone="success" action={dismiss}>
      <span className={styles.verdict}>
        <ShieldCheck size={16} aria-hidden />
        <span><strong>The audit trail is intact.</strong> {plural(verdict.entries, 'entry', 'entries')} checked.</span>
        {seal && <span className={styles.head} title={absolute(new Date(seal.at))}>Seal {count(seal.number)} <code title={seal.hash}>{seal.hash.slice(0, 12)}…</code><CopyButton text={seal.hash} label="Copy the hash of the newest seal, to compare it later" /></span>}
      </span>
    </Notice>
  );
}

/** An entry by its chain and number, or a seal. */
function brokenPlace({ chain, number }: { chain?: number; number: number }) {
  return chain === undefined ? `seal ${count(number)}` : `entry ${placeOf({ chain, number })}`;
}
