import { useQuery } from '@tanstack/react-query';
import { BookOpen } from 'lucide-react';
import { Link, useLocation } from 'wouter';
import { pendingApprovalCount } from '@/api/approvals';
import { useMay } from '@/api/useMay';
import { cx, Skeleton } from '@/design';
import styles from './Navigation.module.css';
import { isOpen, SCREENS, type ScreenEntry } from './screens';

/** The screens that the role permits, in two compact columns. */
export function Navigation({ isLoading }: { isLoading: boolean }) {
  const may = useMay();
  const [location] = useLocation();
  const entries = SCREENS.filter((entry) => may(entry.permission));
  const { data: waiting } = useQuery({ ...pendingApprovalCount(location), enabled: may('thread:read') });
  if (isLoading) return <div className={styles.loading}><Skeleton rows={5} height={16} /></div>;
  return (
    <nav className={styles.navigation} aria-label="Screens">
      {entries.map((entry) => <Entry key={entry.path} entry={entry} active={isOpen(entry.path, location)} waiting={entry.path === '/inbox' ? waiting : undefined} />)}
      <a href="/docs" target="_blank" rel="noreferrer" className={styles.entry}><BookOpen size={15} aria-hidden />API docs</a>
    </nav>
  );
}

function Entry({ entry: { path, title, icon: Icon }, active, waiting }: { entry: ScreenEntry; active: boolean; waiting: string | undefined }) {
  return (
    <Link href={path} className={cx(styles.entry, active && styles.active)} aria-current={active ? 'page' : undefined}>
      <Icon size={15} aria-hidden />
      <span className="truncate">{title}</span>
      {waiting && <span className={styles.count}>{waiting}<span className="visually-hidden"> waiting</span></span>}
    </Link>
  );
}
