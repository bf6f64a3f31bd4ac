import type { ReactNode } from 'react';
import { cx } from './cx';
import styles from './Page.module.css';

/** A screen beside the chat: title, one sentence, actions, content. */
export function Page({ title, lead, actions, children, wide }: { title: ReactNode; lead?: ReactNode; actions?: ReactNode; children: ReactNode; wide?: boolean }) {
  return (
    <div className={styles.page}>
      <header className={styles.header}>
        <div className={styles.titles}>
          <h1>{title}</h1>
          {lead && <p className="soft">{lead}</p>}
        </div>
        {actions && <div className={styles.actions}>{actions}</div>}
      </header>
      <div className={cx(styles.content, wide && styles.wide)}>{children}</div>
    </div>
  );
}

export function Card({ children, className }: { children: ReactNode; className?: string | undefined }) {
  return <section className={cx(styles.card, className)}>{children}</section>;
}

/** Name and value pairs. */
export function Facts({ rows }: { rows: [string, ReactNode][] }) {
  return (
    <dl className={styles.facts}>
      {rows.map(([name, value]) => (
        <div key={name} className={styles.fact}><dt>{name}</dt><dd>{value}</dd></div>
      ))}
    </dl>
  );
}
