import { Ban, CircleCheck, CircleDashed, CirclePause, CircleX, LoaderCircle, Unplug, type LucideIcon } from 'lucide-react';
import type { RunStatus as Status } from '@/api/types';
import { cx } from '@/design';
import styles from './RunStatus.module.css';

const STATUSES: Record<Status, { icon: LucideIcon; word: string }> = {
  queued: { icon: CircleDashed, word: 'Queued' },
  running: { icon: LoaderCircle, word: 'Running' },
  waiting: { icon: CirclePause, word: 'Waiting' },
  completed: { icon: CircleCheck, word: 'Completed' },
  failed: { icon: CircleX, word: 'Failed' },
  cancelled: { icon: Ban, word: 'Cancelled' },
  interrupted: { icon: Unplug, word: 'Interrupted' },
};

export function statusWord(status: Status): string {
  return STATUSES[status].word;
}

/** The status of a run or session as an icon and a word; each status has its own shape. */
export function RunStatus({ status, iconOnly }: { status: Status; iconOnly?: boolean }) {
  const { icon: Icon, word } = STATUSES[status];
  return (
    <span className={cx(styles.status, styles[status])} title={iconOnly ? word : undefined}>
      <Icon size={15} aria-hidden className={styles.icon} />
      <span className={iconOnly ? 'visually-hidden' : undefined}>{word}</span>
    </span>
  );
}
