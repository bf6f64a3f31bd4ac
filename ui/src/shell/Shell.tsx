import { useState, type MouseEvent, type ReactNode } from 'react';
import type { Me } from '@/api/types';
import { Dialog } from '@/design';
import { useMedia } from '@/lib/useMedia';
import { ConnectionBanner, RosterBanner } from './Banners';
import { CommandPalette } from './CommandPalette';
import styles from './Shell.module.css';
import { Sidebar } from './Sidebar';
import { TopBar } from './TopBar';
import { useDocumentTitle } from './useDocumentTitle';
import { useShortcuts } from './useShortcuts';

/** The frame of every screen: navigation at the side, content that scrolls on its own. */
export function Shell({ me, children }: { me: Me | undefined; children: ReactNode }) {
  const isNarrow = useMedia('(max-width: 639.98px)');
  const [isPaletteOpen, setPaletteOpen] = useState(false);
  const [isDrawerOpen, setDrawerOpen] = useState(false);
  const openPalette = () => {
    setDrawerOpen(false);
    setPaletteOpen(true);
  };
  useShortcuts({ onPalette: () => setPaletteOpen((open) => !open) });
  useDocumentTitle(me);
  const sidebar = <Sidebar me={me} onSearch={openPalette} />;
  return (
    <div className={styles.shell}>
      <a href="#main" className={styles.skip}>Skip to content</a>
      {!isNarrow && <aside className={styles.side} aria-label="Conversations and navigation">{sidebar}</aside>}
      <div className={styles.column}>
        {isNarrow && <TopBar onMenu={() => setDrawerOpen(true)} onSearch={openPalette} />}
        <ConnectionBanner />
        <RosterBanner />
        <main id="main" tabIndex={-1} className={styles.main}>{children}</main>
      </div>
      {isNarrow && isDrawerOpen && <Drawer onClose={() => setDrawerOpen(false)}>{sidebar}</Drawer>}
      {isPaletteOpen && <CommandPalette me={me} onClose={() => setPaletteOpen(false)} />}
    </div>
  );
}

/** The sidebar on narrow screens. Following one of its links closes it, also the link to the page that is open. */
function Drawer({ onClose, children }: { onClose: () => void; children: ReactNode }) {
  const closeOnLink = (event: MouseEvent) => (event.target as Element).closest('a[href]') && onClose();
  return (
    <Dialog kind="drawer" title="Conversations and navigation" hideTitle onClose={onClose}>
      {/* The links inside are what is operated; a click that they get by keyboard arrives here too. */}
      {/* eslint-disable-next-line jsx-a11y/click-events-have-key-events, jsx-a11y/no-static-element-interactions */}
      <div ref={(drawer) => drawer?.setAttribute('autofocus', '')} tabIndex={-1} className={styles.drawer} onClick={closeOnLink}>{children}</div>
    </Dialog>
  );
}
