import type { ReactNode } from 'react';
import styles from './Badge.module.css';
import { cx } from './cx';
import { firstCharacter } from './firstCharacter';
import { hueOf } from './hue';

export type Tone = 'neutral' | 'success' | 'warning' | 'danger' | 'info' | 'accent';

/** A short fact in a pill. */
export function Badge({ tone = 'neutral', children, title }: { tone?: Tone; children: ReactNode; title?: string }) {
  return <span className={cx(styles.badge, styles[tone])} title={title}>{children}</span>;
}

interface AgentBadgeProps {
  name: string;
  color?: string | undefined;
  icon?: string | undefined;
  /** For a stable colour where the file names none. */
  id?: string | undefined;
  strong?: boolean;
}

/** Who it is: a dot or icon in the agent's colour, and the name. The colour is never the only sign. */
export function AgentBadge({ name, color, icon, id, strong }: AgentBadgeProps) {
  return (
    <span className={styles.agent} data-hue={hueOf(color, id ?? name)}>
      <span className={styles.mark} aria-hidden>{firstCharacter(icon || name).toUpperCase()}</span>
      <span className={cx(styles.name, strong && styles.strong)} dir="auto" title={name}>{name}</span>
    </span>
  );
}

/** A dot with a word for screen readers. */
export function StatusDot({ tone, label, pulse }: { tone: Tone; label: string; pulse?: boolean }) {
  return <span role="img" aria-label={label} title={label} className={cx(styles.dot, styles[`dot-${tone}`], pulse && styles.pulse)} />;
}
