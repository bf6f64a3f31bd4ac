import { X } from 'lucide-react';
import type { ThreadContext } from '@/api/types';
import { Dialog, IconButton, Tabs } from '@/design';
import { useMedia } from '@/lib/useMedia';
import type { ThreadState } from '@/thread/state';
import { DetailsTab } from './DetailsTab';
import { FilesTab } from './FilesTab';
import styles from './Inspector.module.css';
import { RunTab } from './RunTab';
import { useRemembered } from './storage';
import { NARROW } from './useInspector';

interface Props { threadId: string; thread: ThreadContext | undefined; state: ThreadState; onClose: () => void }

/** Details of the conversation: a panel, or a sheet where there is no room for one. */
export function Inspector({ onClose, ...rest }: Props) {
  const isNarrow = useMedia(NARROW);
  if (isNarrow) return <Dialog kind="sheet" title="Details" onClose={onClose}><InspectorTabs {...rest} /></Dialog>;
  return (
    <aside className={styles.panel} aria-label="Details">
      <header className={styles.head}>
        <h2>Details</h2>
        <IconButton icon={X} label="Close" size="small" onClick={onClose} />
      </header>
      <div className={styles.body}><InspectorTabs {...rest} /></div>
    </aside>
  );
}

function InspectorTabs({ threadId, thread, state }: Omit<Props, 'onClose'>) {
  const [tab, setTab] = useRemembered('baton.inspector.tab', 'run');
  const tabs = [
    { id: 'run', label: 'Run', content: () => <RunTab state={state} /> },
    { id: 'files', label: 'Files', content: () => <FilesTab threadId={threadId} isEmpty={state.items.length === 0} /> },
    { id: 'details', label: 'Details', content: () => <DetailsTab threadId={threadId} thread={thread} state={state} /> },
  ];
  return <Tabs tabs={tabs} active={tab} onChange={setTab} label="Details of the conversation" />;
}
