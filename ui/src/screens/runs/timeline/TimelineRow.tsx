import { memo, type CSSProperties } from 'react';
import { useAgents } from '@/api/useAgents';
import { cx, hueOf } from '@/design';
import { duration } from '@/lib/format';
import { RunStatus } from '@/run/RunStatus';
import { elapsed } from '../times';
import { Agent } from '../Agent';
import { describe } from './describe';
import { percent, type Domain } from './scale';
import type { Segment, TimelineRow } from './segments';
import styles from './Timeline.module.css';

const LANE = 18;
const PADDING = 8;

interface TimelineRowProps { row: TimelineRow; domain: Domain; now: number | undefined; isSelected: boolean }

export const TimelineRowView = memo(function TimelineRowView({ row, domain, now, isSelected }: TimelineRowProps) {
  const { session, depth, id } = row.node;
  const { face } = useAgents();
  const hue = hueOf(face(session.agent).color, session.agent);
  const until = row.end ?? now ?? row.start;
  const took = duration(elapsed(session, until) ?? 0);
  return (
    <div className={cx(styles.row, isSelected && styles.selected)} data-row data-hue={hue} style={{ height: 2 * PADDING + row.lanes * LANE }}>
      <div className={styles.label} style={{ '--depth': Math.min(depth, 5) } as CSSProperties}>
        <span className={styles.state}><RunStatus status={session.status} iconOnly /></span>
        <Agent id={session.agent} />
        <span className={styles.took}>{took}</span>
      </div>
      <div className={styles.track}>
        <div className={cx(styles.session, session.status === 'failed' && styles.sessionFailed)} data-segment={id} style={place(domain, row.start, until)} />
        {row.segments.map((segment) => <SegmentView key={segment.id} segment={segment} domain={domain} until={segment.end ?? until} session={id} />)}
      </div>
    </div>
  );
});

function SegmentView({ segment, domain, until, session }: { segment: Segment; domain: Domain; until: number; session: string }) {
  const { kind, lane, call, attempts, attempt } = segment;
  const position = { ...place(domain, segment.start, until), top: PADDING + lane * LANE };
  const id = `${session} ${segment.id}`;
  if (kind === 'wait') return <div className={styles.wait} data-segment={id} style={position} />;
  const classes = cx(styles.segment, styles[kind], call && call.outcome !== 'ok' && styles[call.outcome], segment.end === undefined && styles.open, attempt > 1 && styles.retry);
  const path = call?.path ?? segment.id.split('#')[0];
  return <button type="button" tabIndex={-1} className={classes} data-segment={id} data-path={path} aria-label={describe(segment)} data-attempt={attempts > 1 ? attempt : undefined} style={position} />;
}

function place(domain: Domain, from: number, to: number): { insetInlineStart: string; width: string } {
  const start = percent(domain, from);
  return { insetInlineStart: `${start}%`, width: `${percent(domain, to) - start}%` };
}
