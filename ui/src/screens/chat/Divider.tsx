import { memo } from 'react';
import { useAgents } from '@/api/useAgents';
import { cx, hueOf } from '@/design';
import type { DividerItem } from '@/thread/state';
import styles from './Divider.module.css';

/** Where a handoff began or ended. */
export const Divider = memo(function Divider({ item }: { item: DividerItem }) {
  const { face } = useAgents();
  const known = face(item.agent);
  const text = item.text || (item.edge === 'start' ? `Now with ${known.name}` : `Back with ${known.name}`);
  return (
    <div role="separator" aria-label={item.mode ? `${text} ${item.mode}` : text} className={cx(styles.divider, item.failed && styles.failed)} data-hue={hueOf(known.color, item.agent)}>
      <span className={styles.text}>{text}{item.mode && <span className={styles.mode}>{item.mode}</span>}</span>
    </div>
  );
});
