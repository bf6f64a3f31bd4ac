import { useQuery } from '@tanstack/react-query';
import { Inbox } from 'lucide-react';
import { useRef, useState } from 'react';
import type { Approval, Decision } from '@/api/approvals';
import { useMay } from '@/api/useMay';
import { EmptyState, Notice, Skeleton } from '@/design';
import { LoadError } from '@/shell/LoadError';
import { ApprovalCard } from './ApprovalCard';
import styles from './Inbox.module.css';
import { inboxQueries } from './queries';

export function Pending() {
  const may = useMay();
  const { data, error, isPending, refetch } = useQuery(inboxQueries.pending());
  const [news, setNews] = useState('');
  const list = useRef<HTMLDivElement>(null);
  const decided = (approval: Approval, decision: Decision) => {
    setNews(`${decision === 'approve' ? 'Approved' : 'Denied'} ${approval.tool}.`);
    // The card with the focus goes away.
    list.current?.focus();
  };
  return (
    <div ref={list} tabIndex={-1} className={styles.cards}>
      <p className="visually-hidden" aria-live="polite">{news}</p>
      {error && <LoadError what="the approvals" error={error} onRetry={() => void refetch()} />}
      {isPending && <Skeleton rows={3} height={148} />}
      {data && data.length > 0 && !may('approval:decide') && <Notice>You can read these. Deciding needs the permission <code>approval:decide</code>.</Notice>}
      {data?.map((approval) => <ApprovalCard key={approval.approval_id} approval={approval} onDecided={(decision) => decided(approval, decision)} />)}
      {data?.length === 0 && <EmptyState icon={Inbox} title="No pending approvals">When an agent wants to use a tool that needs approval, the request appears here and in the conversation.</EmptyState>}
    </div>
  );
}
