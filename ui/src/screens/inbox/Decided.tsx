import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { History } from 'lucide-react';
import { Link } from 'wouter';
import { decidedApprovals, forget } from '@/api/approvals';
import { sentence } from '@/api/problem';
import { useAgents } from '@/api/useAgents';
import { useMay } from '@/api/useMay';
import { RISKS } from '@/approvals/ApprovalCard';
import { endOf, type ApprovalStatus, type ListedApproval } from '@/approvals/record';
import { AgentBadge, Badge, Button, EmptyState, ErrorNote, Skeleton, Table, Time, type Column, type Tone } from '@/design';
import { visible } from '@/lib/visible';
import { LoadError } from '@/shell/LoadError';
import styles from './Inbox.module.css';

const STATUSES: Record<ApprovalStatus, { tone: Tone; label: string }> = {
  pending: { tone: 'info', label: 'Waiting' },
  approved: { tone: 'success', label: 'Approved' },
  denied: { tone: 'danger', label: 'Denied' },
  answered: { tone: 'success', label: 'Answered' },
  expired: { tone: 'neutral', label: 'Expired' },
  cancelled: { tone: 'neutral', label: 'Withdrawn' },
  invalidated: { tone: 'neutral', label: 'Call changed' },
};

export function Decided() {
  const { face } = useAgents();
  const { data, error, isPending, refetch } = useQuery(decidedApprovals());
  const columns: Column<ListedApproval>[] = [
    { key: 'tool', title: 'Request', cell: (row) => <div className={styles.call}><Link href={`/threads/${row.thread_id}`}>{row.kind === 'question' ? <span dir="auto">{visible(row.preview.heading)}</span> : <code>{visible(row.tool)}</code>}</Link><AgentBadge {...face(row.agent)} /></div> },
    { key: 'status', title: 'Decision', cell: (row) => <div className={styles.by}><Badge tone={STATUSES[row.status].tone}>{STATUSES[row.status].label}</Badge>{row.remember && <Remembered approval={row} />}</div> },
    { key: 'risk', title: 'Risk', wide: true, cell: (row) => (row.kind === 'question' ? '–' : RISKS[row.risk].label) },
    { key: 'by', title: 'By', wide: true, cell: (row) => <div className={styles.by}><span dir="auto">{row.decided_by ?? '–'}</span>{row.reason && <span className="faint" dir="auto">{visible(row.reason)}</span>}</div> },
    { key: 'at', title: 'When', wide: true, cell: (row) => <Time at={endOf(row)} /> },
    { key: 'run', title: 'Run', wide: true, cell: (row) => <Link href={`/runs/${row.run_id}`}>Open</Link> },
  ];
  if (error) return <LoadError what="the decisions" error={error} onRetry={() => void refetch()} />;
  if (isPending) return <Skeleton rows={5} height={40} />;
  if (data.data.length === 0) return <EmptyState icon={History} title="No decisions yet">Approved, denied, answered and expired requests are listed here with who decided and why.</EmptyState>;
  const rows = data.data.toSorted((left, right) => endOf(right) - endOf(left));
  return <Table label="Decided requests" columns={columns} rows={rows} rowKey={(row) => row.approval_id} />;
}

/** A decision that holds for later calls, until it is revoked. */
function Remembered({ approval }: { approval: ListedApproval }) {
  const client = useQueryClient();
  const may = useMay();
  const revoke = useMutation({ mutationFn: () => forget(approval), onSettled: () => client.invalidateQueries({ queryKey: ['approvals'] }) });
  return (
    <>
      <span className="faint">For the rest of the conversation</span>
      {may('approval:decide') && <Button busy={revoke.isPending} onClick={() => revoke.mutate()}>Ask again</Button>}
      {revoke.error && <ErrorNote>{sentence(revoke.error)}</ErrorNote>}
    </>
  );
}
