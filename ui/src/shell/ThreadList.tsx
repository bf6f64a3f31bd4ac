import { useEffect, useRef, useState, type KeyboardEvent } from 'react';
import { useRoute } from 'wouter';
import type { Me, Thread } from '@/api/types';
import { Button } from '@/design';
import { useNow } from '@/lib/useNow';
import { groupByDay } from './groups';
import styles from './ThreadList.module.css';
import { ThreadRow } from './ThreadRow';

interface ThreadListProps { threads: Thread[]; showUser: boolean; me: Me | undefined; hasMore: boolean; isLoadingMore: boolean; onMore: () => void }

/** Conversations by day. One of them is in the tab order; the arrow keys move between them. */
export function ThreadList({ threads, showUser, me, hasMore, isLoadingMore, onMore }: ThreadListProps) {
  const [, params] = useRoute('/threads/:threadId');
  const active = params?.threadId;
  const [focused, setFocused] = useState<string>();
  const groups = groupByDay(threads, useNow(60_000));
  const has = (id: string | undefined) => id !== undefined && threads.some((thread) => thread.thread_id === id);
  const inTabOrder = has(focused) ? focused : has(active) ? active : groups[0]?.threads[0]?.thread_id;
  return (
    // The rows are links; the list only moves the focus between them.
    // eslint-disable-next-line jsx-a11y/no-static-element-interactions
    <div onKeyDown={moveFocus}>
      {groups.map((group) => (
        <section key={group.title} className={styles.group}>
          <h2 className={styles.title}>{group.title}</h2>
          <ul className={styles.list} aria-label={group.title}>
            {group.threads.map((thread) => (
              <ThreadRow key={thread.thread_id} thread={thread} me={me} showUser={showUser} isActive={thread.thread_id === active} tabIndex={thread.thread_id === inTabOrder ? 0 : -1} onFocus={() => setFocused(thread.thread_id)} />
            ))}
          </ul>
        </section>
      ))}
      {hasMore && <LoadMore key={threads.length} busy={isLoadingMore} onMore={onMore} />}
    </div>
  );
}

function moveFocus(event: KeyboardEvent<HTMLElement>): void {
  if (!(event.target as Element).matches('[data-thread]')) return;
  const rows = [...event.currentTarget.querySelectorAll<HTMLElement>('[data-thread]')];
  const at = rows.indexOf(event.target as HTMLElement);
  const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1 }[event.key];
  const row = next === undefined ? undefined : rows[next];
  if (!row) return;
  event.preventDefault();
  row.focus();
}

/** Loads the next page as soon as it is scrolled into view, or by a click. */
function LoadMore({ busy, onMore }: { busy: boolean; onMore: () => void }) {
  const ref = useRef<HTMLDivElement>(null);
  const load = useRef(onMore);
  useEffect(() => {
    load.current = onMore;
  });
  useEffect(() => {
    const observer = new IntersectionObserver((entries) => entries.some((entry) => entry.isIntersecting) && load.current(), { rootMargin: '200px' });
    if (ref.current) observer.observe(ref.current);
    return () => observer.disconnect();
  }, []);
  return <div ref={ref} className={styles.more}><Button kind="ghost" size="small" busy={busy} onClick={onMore}>Load more</Button></div>;
}
