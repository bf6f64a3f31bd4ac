import { Check, MessageSquare, ListTree, X } from 'lucide-react';
import { useId, useState } from 'react';
import { Link } from 'wouter';
import type { Approval, Decision } from '@/api/approvals';
import { sentence } from '@/api/problem';
import { useAgents } from '@/api/useAgents';
import { useMay } from '@/api/useMay';
import { AgentBadge, Badge, Button, ErrorNote, TextField, Time, type Tone } from '@/design';
import { Arguments } from './Arguments';
import { Expiry } from './Expiry';
import styles from './Inbox.module.css';
import { useDecide } from './queries';

export const RISKS: Record<Approval['risk'], { tone: Tone; label: string }> = {
  low: { tone: 'neutral', label: 'Low risk' },
  medium: { tone: 'warning', label: 'Medium risk' },
  high: { tone: 'danger', label: 'High risk' },
};

export function ApprovalCard({ approval, onDecided }: { approval: Approval; onDecided: (decision: Decision) => void }) {
  const { face } = useAgents();
  const may = useMay();
  const id = useId();
  const risk = RISKS[approval.risk];
  return (
    <article className={styles.card} aria-labelledby={id}>
      <header className={styles.header}>
        <h2 id={id} className={styles.title}><AgentBadge {...face(approval.agent)} /><span className="soft">wants to use</span><code>{approval.tool}</code></h2>
        <Badge tone={risk.tone}>{risk.label}</Badge>
      </header>
      <Arguments value={approval.arguments} />
      <div className={styles.meta}>
        <span>Asked <Time at={approval.created_at} /></span>
        <Expiry at={approval.expires_at} />
        <Links approval={approval} />
      </div>
      {may('approval:decide') && <Decide approval={approval} onDecided={onDecided} />}
    </article>
  );
}

export function Links({ approval: { thread_id, run_id } }: { approval: Approval }) {
  return (
    <span className={styles.links}>
      <Link href={`/threads/${thread_id}`}><MessageSquare size={13} aria-hidden />Conversation</Link>
      <Link href={`/runs/${run_id}`}><ListTree size={13} aria-hidden />Run</Link>
    </span>
  );
}

function Decide({ approval, onDecided }: { approval: Approval; onDecided: (decision: Decision) => void }) {
  const [reason, setReason] = useState('');
  const decide = useDecide(approval.approval_id, onDecided);
  const isDeciding = (decision: Decision) => decide.isPending && decide.variables.decision === decision;
  const submit = (decision: Decision) => decide.mutate({ decision, reason: reason.trim() });
  return (
    <>
      <div className={styles.decide}>
        <TextField label={`Reason for ${approval.tool}`} hideLabel placeholder="Reason (optional)" title="The agent and the audit trail get it" value={reason} maxLength={1000} dir="auto" onChange={(event) => setReason(event.target.value)} className={styles.reason} />
        <div className={styles.buttons}>
          <Button icon={X} disabled={decide.isPending} busy={isDeciding('deny')} onClick={() => submit('deny')}>Deny</Button>
          <Button icon={Check} kind="primary" disabled={decide.isPending} busy={isDeciding('approve')} onClick={() => submit('approve')}>Approve</Button>
        </div>
      </div>
      {decide.error && <ErrorNote>{sentence(decide.error)}</ErrorNote>}
    </>
  );
}
