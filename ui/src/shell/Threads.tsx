import { Search, Users, X } from 'lucide-react';
import { useState } from 'react';
import { sentence } from '@/api/problem';
import type { Me } from '@/api/types';
import { useMay } from '@/api/useMay';
import { Button, ErrorNote, IconButton, Skeleton } from '@/design';
import { useDebounced } from '@/lib/useDebounced';
import { ThreadList } from './ThreadList';
import styles from './Threads.module.css';
import { useOwnThreads } from './useOwnThreads';

/** The conversations with their search. */
export function Threads({ me }: { me: Me | undefined }) {
  const may = useMay();
  const [text, setText] = useState('');
  const [allUsers, setAllUsers] = useState(false);
  const q = useDebounced(text.trim(), 250);
  const list = useOwnThreads(me, q, allUsers);
  const hidden = me !== undefined && !may('thread:read');
  return (
    <section className={styles.threads} aria-label="Conversations">
      {!hidden && (
        <div className={styles.search}>
          <div className={styles.field}>
            <Search size={14} aria-hidden className={styles.icon} />
            <input type="search" aria-label="Search conversations" placeholder="Search conversations" value={text} onChange={(event) => setText(event.target.value)} onKeyDown={(event) => event.key === 'Escape' && text && (event.preventDefault(), setText(''))} />
            {text && <IconButton icon={X} label="Clear search" size="small" className={styles.clear} onClick={() => setText('')} />}
          </div>
          {may('trace:read') && <IconButton icon={Users} label={allUsers ? 'Show only my conversations' : 'Show conversations of all users'} pressed={allUsers} onClick={() => setAllUsers(!allUsers)} />}
        </div>
      )}
      <div className={styles.scroll}>
        {list.isPending && !hidden && <div className={styles.loading}><Skeleton rows={6} height={28} /></div>}
        {list.error && list.threads.length === 0 && (
          <ErrorNote action={<Button size="small" onClick={() => void list.refetch()}>Retry</Button>}>{sentence(list.error)}</ErrorNote>
        )}
        {list.isSuccess && list.threads.length === 0 && <Nothing q={q} canStart={may('thread:write')} />}
        <ThreadList threads={list.threads} showUser={allUsers} me={me} hasMore={list.hasNextPage} isLoadingMore={list.isFetchingNextPage} onMore={() => void list.fetchNextPage()} />
      </div>
    </section>
  );
}

function Nothing({ q, canStart }: { q: string; canStart: boolean }) {
  if (q) return <p className={styles.nothing}>No conversation matches “<bdi>{q}</bdi>”.</p>;
  return <p className={styles.nothing}>{canStart ? 'Your conversations appear here. Write a message to start the first one.' : 'There are no conversations that you may read.'}</p>;
}
