import { Menu as MenuIcon, Search, SquarePen } from 'lucide-react';
import { useLocation } from 'wouter';
import { useMay } from '@/api/useMay';
import { IconButton } from '@/design';
import { Logo } from './Logo';
import styles from './TopBar.module.css';

/** On narrow screens in place of the sidebar. */
export function TopBar({ onMenu, onSearch }: { onMenu: () => void; onSearch: () => void }) {
  const may = useMay();
  const [, navigate] = useLocation();
  return (
    <header className={styles.bar}>
      <IconButton icon={MenuIcon} label="Open conversations and navigation" onClick={onMenu} />
      <span className={styles.brand}><Logo size={20} />Baton</span>
      <IconButton icon={Search} label="Search and commands" onClick={onSearch} />
      {may('thread:write') && <IconButton icon={SquarePen} label="New conversation" onClick={() => navigate('/')} />}
    </header>
  );
}
