import { useMutation, useQuery } from '@tanstack/react-query';
import { ShieldQuestion } from 'lucide-react';
import { Link } from 'wouter';
import { decideApproval, pendingApprovals, type Decision } from '@/api/approvals';
import type { ApprovalValue } from '@/api/events';
import { sentence } from '@/api/problem';
import { useMay } from '@/api/useMay';
import { Badge, Button, ErrorNote } from '@/design';
import { absolute } from '@/lib/format';
import { visible } from '@/lib/visible';
import { CodeBlock } from '@/markdown/CodeBlock';
import type { RunState } from '@/thread/state';
import styles from './RunNote.module.css';

/** Decisions that a run waits for. Of a run that this tab did not follow they are read from the server. */
export function Approvals({ run }: { run: RunState }) {
  const { data } = useQuery({ ...pendingApprovals(), enabled: run.approvals.length === 0 });
  const approvals: ApprovalValue[] = run.approvals.length > 0 ? run.approvals : (data?.data ?? []).filter(({ run_id }) => run_id === run.id);
  if (approvals.length === 0) return <p className={styles.progress}>Waiting for a decision. <Link href="/inbox">Open the inbox</Link></p>;
  return approvals.map((approval) => <ApprovalCard key={approval.approval_id} approval={approval} />);
}

function ApprovalCard({ approval }: { approval: ApprovalValue }) {
  const may = useMay();
  const decide = useMutation({
    mutationFn: (decision: Decision) => decideApproval(approval.approval_id, decision),
  });
  return (
    <section className={styles.approval} aria-label={`Approval of ${approval.tool}`}>
      <div className={styles.approvalHead}>
        <ShieldQuestion size={16} aria-hidden />
        <strong>May <code>{approval.tool}</code> be used?</strong>
        <Badge tone={approval.risk === 'high' ? 'danger' : 'warning'}>{approval.risk} risk</Badge>
        <span className="faint">expires {absolute(new Date(approval.expires_at))}</span>
      </div>
      <CodeBlock text={visible(JSON.stringify(approval.arguments, null, 2) ?? '')} language="arguments" wraps />
      {decide.error && <ErrorNote>{sentence(decide.error)}</ErrorNote>}
      {decide.isSuccess ? <p>Decided: {decide.variables === 'approve' ? 'approved' : 'denied'}.</p> : may('approval:decide') ? (
        <div className={styles.approvalActions}>
          <Button kind="primary" size="small" busy={decide.isPending} onClick={() => decide.mutate('approve')}>Approve</Button>
          <Button size="small" disabled={decide.isPending} onClick={() => decide.mutate('deny')}>Deny</Button>
        </div>
      ) : <p className="soft">The decision needs the permission <code>approval:decide</code>.</p>}
    </section>
  );
}
