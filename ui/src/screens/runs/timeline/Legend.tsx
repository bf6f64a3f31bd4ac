import { cx } from '@/design';
import styles from './Timeline.module.css';

/** What the shapes mean. They differ in height and pattern, not only in colour. */
export function Legend({ withAttempts }: { withAttempts: boolean }) {
  return (
    <div className={styles.legend} data-hue="gray">
      <Entry className={styles.model}>Model</Entry>
      <Entry className={styles.tool}>Tool</Entry>
      <Entry className={styles.delegation}>Sub-agents</Entry>
      <Entry className={styles.wait}>Wait</Entry>
      <Entry className={cx(styles.model, styles.failed)}>Failed</Entry>
      {withAttempts && <Entry className={cx(styles.model, styles.retry)}>Retry</Entry>}
    </div>
  );
}

function Entry({ className, children }: { className: string | undefined; children: string }) {
  return <span className={styles.entry}><span className={cx(styles.sample, className)} aria-hidden />{children}</span>;
}
