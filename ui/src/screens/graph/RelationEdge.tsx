import { Position, type EdgeProps } from '@xyflow/react';
import { memo } from 'react';
import { cx } from '@/design';
import { curve } from './curve';
import styles from './Edge.module.css';
import type { AgentFlowEdge } from './flow';
import { KINDS } from './kinds';
import { stepsText } from './overlay';

/** A line whose pattern and label say how one agent involves the other. */
export const RelationEdge = memo(function RelationEdge({ sourceX, sourceY, targetX, targetY, sourcePosition, targetPosition, data }: EdgeProps<AgentFlowEdge>) {
  if (!data) return null;
  const { edge, mark, isNear, isFaded, lane, route } = data;
  const kind = edge ? KINDS[edge.kind] : undefined;
  const shift = lane * 18;
  const isVertical = sourcePosition === Position.Bottom;
  const [dx, dy] = isVertical ? [shift, 0] : [0, shift];
  const [path, labelX, labelY] = curve({ sourceX: sourceX + dx, sourceY: sourceY + dy, targetX: targetX + dx, targetY: targetY + dy, sourcePosition, targetPosition }, isVertical, lane === 0 ? route : undefined);
  const problem = edge?.problem;
  const tone = problem || mark?.failed ? 'danger' : mark ? 'visited' : isNear ? 'near' : 'plain';
  const label = [mark && stepsText(mark), kind?.label ?? 'Handoff'].filter(Boolean).join(' · ');
  return (
    <g className={cx(styles.edge, styles[tone], isFaded && styles.faded, mark?.running && styles.running)}>
      <title>{[kind?.verb, edge?.label, problem].filter(Boolean).join(': ')}</title>
      <path d={path} className={styles.hit} />
      <path d={path} className={styles.line} strokeDasharray={kind?.dash} strokeWidth={(kind?.width ?? 1.5) + (mark ? 1 : 0)} markerEnd={`url(#baton-arrow-${tone})`} />
      {mark?.running && <path d={path} className={styles.flow} />}
      <text x={labelX} y={labelY} className={styles.label} textAnchor="middle" dominantBaseline="central">{problem ? `⚠ ${label}` : label}</text>
    </g>
  );
});

/** The arrow heads, one per tone. */
export function Arrows() {
  return (
    <svg className={styles.defs} aria-hidden>
      <defs>
        {['plain', 'near', 'visited', 'danger'].map((tone) => (
          <marker key={tone} id={`baton-arrow-${tone}`} className={styles[tone]} viewBox="0 0 10 10" refX="9" refY="5" markerWidth="9" markerHeight="9" markerUnits="userSpaceOnUse" orient="auto-start-reverse">
            <path d="M0 0.5 L10 5 L0 9.5 z" className={styles.arrow} />
          </marker>
        ))}
      </defs>
    </svg>
  );
}
