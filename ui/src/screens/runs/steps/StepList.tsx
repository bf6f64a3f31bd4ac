import { Bot, CirclePause, CircleX, Clock, MessageSquareText, RefreshCw, StickyNote, Target, Wrench, type LucideIcon } from 'lucide-react';
import { useMemo } from 'react';
import type { Call, Step } from '@/api/types';
import { cx } from '@/design';
import { duration } from '@/lib/format';
import { groupBy } from '@/lib/groupBy';
import { Agent } from '../Agent';
import type { StepGroup } from './conversation';
import { stepTitle, toolOf } from './decode';
import styles from './StepsTab.module.css';

const ICONS: Record<Step['kind'], LucideIcon> = { session: Target, turn: Bot, tool: Wrench, say: MessageSquareText, round: RefreshCw, note: StickyNote, wait: CirclePause };

interface StepListProps { groups: StepGroup[]; calls: Call[]; selected: string; onSelect: (path: string) => void }

export function StepList({ groups, calls, selected, onSelect }: StepListProps) {
  const byPath = useMemo(() => groupBy(calls, (call) => call.path), [calls]);
  return (
    <nav aria-label="Steps" className={styles.list}>
      {groups.map(({ node, steps }) => (
        <section key={node.id} className={styles.group}>
          <h3 className={styles.groupTitle} title={node.session.why}><Agent id={node.session.agent} /></h3>
          {steps.map((step) => <StepRow key={step.path} step={step} title={stepTitle(step, byPath.get(step.path) ?? [], steps)} calls={byPath.get(step.path) ?? []} isSelected={step.path === selected} onSelect={onSelect} />)}
        </section>
      ))}
    </nav>
  );
}

function StepRow({ step, title, calls, isSelected, onSelect }: { step: Step; title: string; calls: Call[]; isSelected: boolean; onSelect: (path: string) => void }) {
  const Icon = ICONS[step.kind];
  const last = calls.at(-1);
  const hasFailed = last?.outcome === 'failed' || (step.kind === 'tool' && toolOf(step, calls).failed);
  const took = calls.reduce((sum, call) => sum + call.latency_ms, 0);
  return (
    <button type="button" className={cx(styles.step, isSelected && styles.selected, step.kind === 'note' && styles.quiet)} aria-current={isSelected || undefined} onClick={() => onSelect(step.path)}>
      <Icon size={14} aria-hidden className={styles.stepIcon} />
      <span className={styles.stepTitle}>{title}</span>
      {calls.length > 1 && <span className={styles.retries} title={`${calls.length} attempts`}>×{calls.length}</span>}
      {hasFailed && <CircleX size={14} role="img" aria-label="failed" className={styles.failed} />}
      {step.state === 'started' && <Clock size={14} role="img" aria-label="in progress" className={styles.open} />}
      {calls.length > 0 && <span className={styles.stepTime}>{duration(took)}</span>}
    </button>
  );
}
