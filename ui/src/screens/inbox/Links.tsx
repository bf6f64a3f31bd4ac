import { ListTree, MessageSquare } from 'lucide-react';
import { Link } from 'wouter';
import type { ListedApproval } from '@/approvals/record';
import { Time } from '@/design';
import styles from './Inbox.module.css';

/** Where a request comes from, and since when it waits. */
export function Links({ approval: { thread_id, run_id, created_at } }: { approval: ListedApproval }) {
  return (
    <div className={styles.meta}>
      <span>Asked <Time at={created_at} /></span>
      <Link href={`/threads/${thread_id}`}><MessageSquare size={13} aria-hidden />Conversation</Link>
      <Link href={`/runs/${run_id}`}><ListTree size={13} aria-hidden />Run</Link>
    </div>
  );
}
