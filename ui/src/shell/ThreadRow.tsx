import { useQuery } from '@tanstack/react-query';
import { EllipsisVertical, Pencil, Trash2 } from 'lucide-react';
import { useRef, useState } from 'react';
import { Link } from 'wouter';
import { pendingApprovals } from '@/api/approvals';
import type { Me, Thread } from '@/api/types';
import { useAgents, type AgentFace } from '@/api/useAgents';
import { useMay } from '@/api/useMay';
import { isWorkflowQuestion } from '@/approvals/record';
import { cx, hueOf, Menu } from '@/design';
import { DeleteThread } from './DeleteThread';
import { RenameThread } from './RenameThread';
import styles from './ThreadRow.module.css';

interface ThreadRowProps { thread: Thread; me: Me | undefined; showUser: boolean; isActive: boolean; tabIndex: number; onFocus: () => void }

export function ThreadRow({ thread, me, showUser, isActive, tabIndex, onFocus }: ThreadRowProps) {
  const [mode, setMode] = useState<'show' | 'rename' | 'delete'>('show');
  const link = useRef<HTMLAnchorElement>(null);
  const may = useMay();
  const { face } = useAgents();
  const holder = thread.is_handoff_active && thread.current_active_agent ? face(thread.current_active_agent) : undefined;
  const title = thread.title || 'Untitled conversation';
  const canChange = may('thread:write') && (thread.user_id === me?.user_id || may('admin:*'));
  const done = () => {
    setMode('show');
    requestAnimationFrame(() => link.current?.focus());
  };
  const { data: isWaiting = false } = useQuery({ ...pendingApprovals(), select: ({ data }) => data.some((one) => one.thread_id === thread.thread_id && !isWorkflowQuestion(one)) });
  const status = isWaiting ? 'Waits for a decision' : statusOf(thread, holder);
  const details = [status, showUser && `User: ${thread.user_id}`, thread.queued > 0 && `${thread.queued} queued`].filter(Boolean).join(' · ');
  return (
    <li className={cx(styles.row, isActive && styles.active)} data-hue={holder && hueOf(holder.color, holder.id)}>
      {mode === 'rename' ? (
        <RenameThread threadId={thread.thread_id} title={thread.title} onDone={done} />
      ) : (
        <>
          <Link ref={link} href={`/threads/${thread.thread_id}`} className={styles.link} data-thread tabIndex={tabIndex} onFocus={onFocus} aria-current={isActive ? 'page' : undefined} title={`${title}\n${details}`}>
            <span role="img" aria-label={status} className={cx(styles.dot, holder && styles.held, isWaiting ? styles.waiting : thread.active_run_id && styles.running)} />
            <span className={styles.text}>
              <span className={cx(styles.title, 'truncate')} dir="auto">{title}</span>
              {holder && <span className={cx(styles.second, 'truncate')} dir="auto">{[holder.name, thread.progress && `Step ${thread.progress.step} of ${thread.progress.total}`].filter(Boolean).join(' · ')}</span>}
              {showUser && <span className={cx(styles.second, 'truncate')} dir="auto">{thread.user_id}</span>}
            </span>
          </Link>
          {canChange && (
            <div className={styles.menu}>
              <Menu label={`Actions for ${title}`} icon={EllipsisVertical} items={[
                { label: 'Rename', icon: Pencil, onSelect: () => setMode('rename') },
                { label: 'Delete', icon: Trash2, danger: true, onSelect: () => setMode('delete') },
              ]} />
            </div>
          )}
        </>
      )}
      {mode === 'delete' && <DeleteThread threadId={thread.thread_id} title={title} isOpen={isActive} onClose={() => setMode('show')} />}
    </li>
  );
}

function statusOf(thread: Thread, holder: AgentFace | undefined): string {
  if (holder) return thread.active_run_id ? `${holder.name} is working` : `With ${holder.name}`;
  return thread.active_run_id ? 'Running' : 'Idle';
}
