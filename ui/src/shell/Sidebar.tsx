import { Plus, Search } from 'lucide-react';
import { Link } from 'wouter';
import type { Me } from '@/api/types';
import { useMay } from '@/api/useMay';
import { shortcut } from '@/lib/keys';
import { Account } from './Account';
import { Logo } from './Logo';
import { Navigation } from './Navigation';
import styles from './Sidebar.module.css';
import { Threads } from './Threads';

/** Conversations above, screens below, the account last. Only the conversations scroll. */
export function Sidebar({ me, onSearch }: { me: Me | undefined; onSearch: () => void }) {
  const may = useMay();
  return (
    <div className={styles.sidebar}>
      <div className={styles.top}>
        <Link href="/" className={styles.brand} aria-label="Baton, start page"><Logo />Baton</Link>
        <button type="button" className={styles.palette} onClick={onSearch} title="Search and commands" aria-label={`Search and commands, ${shortcut('K')}`}>
          <Search size={14} aria-hidden />
          <kbd>{shortcut('K')}</kbd>
        </button>
      </div>
      {(!me || may('thread:write')) && (
        <div className={styles.new}>
          <Link href="/" className={styles.newLink} title={`New conversation (${shortcut('O', true)})`}><Plus size={15} aria-hidden />New conversation</Link>
        </div>
      )}
      <Threads me={me} />
      <Navigation isLoading={!me} />
      <Account me={me} />
    </div>
  );
}
