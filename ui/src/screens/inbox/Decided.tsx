import { useQuery } from '@tanstack/react-query';
import { History } from 'lucide-react';
import { Link } from 'wouter';
import type { Approval } from '@/api/approvals';
import { useAgents } from '@/api/useAgents';
import { AgentBadge, Badge, EmptyState, Skeleton, Table, Time, type Column, type Tone } from '@/design';
import { LoadError } from '@/shell/LoadError';
import { Links, RISKS } from './ApprovalCard';
import styles from './Inbox.module.css';
import { endOf, inboxQueries } from './queries';

const STATUSES: Record<Approval['status'], { tone: Tone; label: string }> = {
  pending: { tone: 'info', label: 'Waiting' },
  approved: { tone: 'success', label: 'Approved' },
  denied: { tone: 'danger', label: 'Denied' },
  expired: { tone: 'neutral', label: 'Expired' },
};

export function Decided() {
  const { face } = useAgents();
  const { data, error, isPending, refetch } = useQuery(inboxQueries.decided());
  const columns: Column<Approval>[] = [
    { key: 'tool', title: 'Call', cell: (row) => <div className={styles.call}><Link href={`/runs/${row.run_id}`}><code>{row.tool}</code></Link><AgentBadge {...face(row.agent)} /></div> },
    { key: 'status', title: 'Decision', cell: (row) => <Badge tone={STATUSES[row.status].tone}>{STATUSES[row.status].label}</Badge> },
    { key: 'risk', title: 'Risk', wide: true, cell: (row) => RISKS[row.risk].label },
    { key: 'by', title: 'By', wide: true, cell: (row) => <div className={styles.by}><span dir="auto">{row.decided_by ?? '–'}</span>{row.reason && <span className="faint" dir="auto">{row.reason}</span>}</div> },
    { key: 'at', title: 'When', cell: (row) => <Time at={endOf(row)} /> },
    { key: 'links', title: 'Open', wide: true, cell: (row) => <Links approval={row} /> },
  ];
  if (error) return <LoadError what="the decisions" error={error} onRetry={() => void refetch()} />;
  if (isPending) return <Skeleton rows={5} height={40} />;
  if (data.length === 0) return <EmptyState icon={History} title="No decisions yet">Approved, denied and expired calls are listed here with who decided and why.</EmptyState>;
  return <Table label="Decided approvals" columns={columns} rows={data} rowKey={(row) => row.approval_id} />;
}
