import { useQuery } from '@tanstack/react-query';
import { Inbox } from 'lucide-react';
import { useRef, useState } from 'react';
import { pendingApprovals } from '@/api/approvals';
import { isOpen, type Approval, type ListedApproval } from '@/approvals/record';
import { Request } from '@/approvals/Request';
import { EmptyState, Notice, Skeleton } from '@/design';
import { LoadError } from '@/shell/LoadError';
import styles from './Inbox.module.css';
import { Links } from './Links';

/** What waits, and what was decided here until the page is left: a card that goes away at once would leave no trace of the decision. */
export function Pending() {
  const { data, error, isPending, refetch } = useQuery(pendingApprovals());
  const [settled, setSettled] = useState<ListedApproval[]>([]);
  const [news, setNews] = useState('');
  const list = useRef<HTMLDivElement>(null);
  const change = (before: ListedApproval, now: Approval | undefined) => {
    if (!now) {
      setNews('This request does not exist any more.');
      return list.current?.focus();
    }
    setSettled((all) => [...all.filter(({ approval_id }) => approval_id !== before.approval_id), { ...before, ...now }]);
    setNews(`${before.kind === 'question' ? 'The question' : before.tool} is ${now.status}.`);
  };
  const waiting = (data?.data ?? []).filter((one) => isOpen(one) && !settled.some(({ approval_id }) => approval_id === one.approval_id));
  const shown = [...settled, ...waiting].toSorted((left, right) => Date.parse(left.expires_at) - Date.parse(right.expires_at));
  return (
    <div ref={list} tabIndex={-1} className={styles.cards}>
      <p className="visually-hidden" aria-live="polite">{news}</p>
      {error && <LoadError what="the requests" error={error} onRetry={() => void refetch()} />}
      {isPending && <Skeleton rows={3} height={148} />}
      {shown.map((approval) => <Request key={approval.approval_id} approval={approval} onChange={(now) => change(approval, now)} links={<Links approval={approval} />} />)}
      {data?.next_cursor && <Notice>There are more requests than this page shows. The next ones appear when these are decided.</Notice>}
      {data && shown.length === 0 && <EmptyState icon={Inbox} title="Nothing waits for you">When an agent wants to use a tool that needs approval, or asks a question, the request appears here and in its conversation.</EmptyState>}
    </div>
  );
}
