import { CircleAlert, type LucideIcon } from 'lucide-react';
import type { ReactNode } from 'react';
import { cx } from './cx';
import styles from './Feedback.module.css';

/** Teaches what belongs here: one sentence and one action. */
export function EmptyState({ icon: Icon, title, children, action }: { icon: LucideIcon; title: string; children?: ReactNode; action?: ReactNode }) {
  return (
    <div className={styles.empty}>
      <span className={styles.emptyIcon} aria-hidden><Icon size={20} /></span>
      <h2>{title}</h2>
      {children && <p className={styles.emptyText}>{children}</p>}
      {action}
    </div>
  );
}

/** An error where it happened: one sentence and what helps. */
export function ErrorNote({ children, action, title }: { children: ReactNode; action?: ReactNode; title?: string }) {
  return (
    <div role="alert" className={styles.error}>
      <CircleAlert size={16} aria-hidden className={styles.errorIcon} />
      <div className={styles.errorText}>
        {title && <strong>{title} </strong>}
        {children}
      </div>
      {action}
    </div>
  );
}

export function Notice({ tone = 'info', children, action }: { tone?: 'info' | 'warning' | 'success'; children: ReactNode; action?: ReactNode }) {
  return <div className={cx(styles.notice, styles[tone])}><div className={styles.errorText}>{children}</div>{action}</div>;
}

/** Higher bars take the place of rows and cards, which are as wide as the page; lower ones that of text. */
const LINE = 28;

/** Grey bars that hold the place of what is loading. */
export function Skeleton({ rows = 3, height = 16 }: { rows?: number; height?: number }) {
  return (
    <div className={styles.skeletons} role="status" aria-label="Loading">
      {Array.from({ length: rows }, (_, at) => <div key={at} className={styles.skeleton} style={{ height, width: height > LINE ? '100%' : `${96 - ((at * 17) % 40)}%` }} />)}
    </div>
  );
}

export function ProgressBar({ value, max, label }: { value: number; max: number; label: string }) {
  return (
    <div role="progressbar" aria-label={label} aria-valuenow={value} aria-valuemin={0} aria-valuemax={max} className={styles.progress}>
      <div className={styles.progressFill} style={{ width: `${max > 0 ? (100 * value) / max : 0}%` }} />
    </div>
  );
}
