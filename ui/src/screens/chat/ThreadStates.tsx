import { MessageCircleOff } from 'lucide-react';
import { EmptyState, Skeleton } from '@/design';
import { StartLink } from '@/shell/StartLink';
import { LoadError } from '@/shell/LoadError';
import styles from './Conversation.module.css';

export function LoadingThread() {
  return (
    <div className={styles.loading}>
      <Skeleton rows={1} height={40} />
      <Skeleton rows={4} />
      <Skeleton rows={1} height={40} />
      <Skeleton rows={6} />
    </div>
  );
}

/** Before anything is known: the places of the header, the messages and the composer. */
export function LoadingScreen({ isNew }: { isNew: boolean }) {
  return (
    <div className={styles.place}>
      <div className={styles.headerPlace} />
      {isNew ? <div className={styles.loading} role="status" aria-label="Loading" /> : <LoadingThread />}
      <div className={styles.composerPlace} />
    </div>
  );
}

/** An unknown id and the id of a foreign thread look the same. */
export function MissingThread() {
  return (
    <div className={styles.state}>
      <EmptyState icon={MessageCircleOff} title="This conversation does not exist or belongs to someone else" action={<StartLink />}>
        The address may be mistyped, or the conversation was deleted.
      </EmptyState>
    </div>
  );
}

export function UnreadableThread({ problem, onRetry }: { problem: unknown; onRetry: () => void }) {
  return (
    <div className={styles.state}>
      <LoadError what="the conversation" error={problem} onRetry={onRetry} />
    </div>
  );
}
