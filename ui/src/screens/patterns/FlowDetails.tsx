import { useAgents } from '@/api/useAgents';
import { AgentBadge, Badge } from '@/design';
import { count, dollars, duration } from '@/lib/format';
import { gradeOf, KINDS, percent } from './data';
import type { Link } from './flow';
import styles from './Flow.module.css';

/** What is known of the path under the pointer; without one, how to read the diagram. */
export function FlowDetails({ link }: { link: Link | undefined }) {
  const { face } = useAgents();
  if (!link) {
    return (
      <div className={styles.details}>
        <span className={styles.sample}><Sample grade="good" />90 % or more end well</span>
        <span className={styles.sample}><Sample grade="mixed" />60 to 90 %</span>
        <span className={styles.sample}><Sample grade="poor" />below 60 %</span>
        <span className="faint">The width is how often. Point at a path, or select it, for details.</span>
      </div>
    );
  }
  const tone = { good: 'success', mixed: 'warning', poor: 'danger' } as const;
  return (
    <div className={styles.details}>
      <span className={styles.ends}><AgentBadge {...face(link.from)} /><span aria-hidden>→</span><AgentBadge {...face(link.to)} /></span>
      <Badge title={KINDS[link.kind].explanation}>{KINDS[link.kind].label}</Badge>
      <Badge tone={tone[gradeOf(link.rate)]}>{percent(link.rate)} ended well</Badge>
      <span>{count(link.successes)} of {count(link.count)}</span>
      <span>{duration(link.latency)} on average</span>
      {link.cost > 0 && <span>{dollars(link.cost)} on average</span>}
      {link.liked + link.disliked > 0 && <span>{count(link.liked)} liked, {count(link.disliked)} disliked</span>}
      <span className={styles.classes} dir="auto">{link.classes.slice(0, 3).join(', ')}{link.classes.length > 3 && ` and ${link.classes.length - 3} more`}</span>
    </div>
  );
}

function Sample({ grade }: { grade: 'good' | 'mixed' | 'poor' }) {
  return <svg width="36" height="12" aria-hidden className={styles[grade]}><path d="M 0 6 H 36" className={styles.ribbon} strokeWidth="12" /><path d="M 0 6 H 36" className={styles.core} /></svg>;
}
