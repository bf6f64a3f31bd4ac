import { useMemo, useState, type KeyboardEvent } from 'react';
import { useAgents } from '@/api/useAgents';
import { AgentBadge, cx } from '@/design';
import { count, plural } from '@/lib/format';
import { useWidth } from '@/lib/useWidth';
import { gradeOf, KINDS, percent } from './data';
import { layout, type Link, type PlacedLink, type PlacedNode } from './flow';
import { FlowDetails } from './FlowDetails';
import styles from './Flow.module.css';

/** Who passes to whom: as wide as it is frequent, solid where it ends well, broken where it does not. */
export function FlowDiagram({ links }: { links: Link[] }) {
  const [ref, width] = useWidth<HTMLDivElement>();
  const flow = useMemo(() => layout(links), [links]);
  const [pinned, setPinned] = useState<string>();
  const [hovered, setHovered] = useState<string>();
  const shownKey = hovered ?? pinned;
  const shown = links.find((link) => link.key === shownKey);
  const box = Math.max(96, Math.min(208, Math.round(width * 0.32)));
  return (
    <div className={styles.flow}>
      <div className={styles.titles} aria-hidden><span>From</span><span>To</span></div>
      <div ref={ref} className={styles.canvas} style={{ height: flow.height }}>
        {width > 0 && (
          <>
            <svg width={width} height={flow.height} className={styles.links} aria-label="Paths between agents" role="group">
              {flow.links.map((link) => (
                <FlowLink key={link.key} link={link} from={box} to={width - box} isDimmed={shownKey !== undefined && shownKey !== link.key} isPinned={pinned === link.key}
                  onHover={(isOver) => setHovered(isOver ? link.key : undefined)} onPin={() => setPinned(pinned === link.key ? undefined : link.key)} />
              ))}
            </svg>
            {flow.sources.map((node) => <Node key={node.agent} node={node} width={box} />)}
            {flow.targets.map((node) => <Node key={node.agent} node={node} width={box} isTarget />)}
          </>
        )}
      </div>
      <FlowDetails link={shown} />
    </div>
  );
}

function Node({ node, width, isTarget }: { node: PlacedNode; width: number; isTarget?: boolean }) {
  const { face } = useAgents();
  const agent = face(node.agent);
  return (
    <div className={styles.node} title={`${agent.name}: ${count(node.count)} ${isTarget ? 'received' : 'passed on'}`} style={{ top: node.y, height: node.height, width, ...(isTarget ? { right: 0 } : { left: 0 }) }}>
      <AgentBadge {...agent} />
      <span className={styles.nodeCount}>{count(node.count)}</span>
    </div>
  );
}

interface FlowLinkProps { link: PlacedLink; from: number; to: number; isDimmed: boolean; isPinned: boolean; onHover: (isOver: boolean) => void; onPin: () => void }

function FlowLink({ link, from, to, isDimmed, isPinned, onHover, onPin }: FlowLinkProps) {
  const { face } = useAgents();
  const middle = (from + to) / 2;
  const path = `M ${from} ${link.y1} C ${middle} ${link.y1}, ${middle} ${link.y2}, ${to} ${link.y2}`;
  const text = to - from < 160 ? percent(link.rate) : `${count(link.count)} · ${percent(link.rate)}`;
  // The name begins with what is written, so that it can be said to a voice control.
  const label = `${text}, ${KINDS[link.kind].label} from ${face(link.from).name} to ${face(link.to).name}: ${plural(link.count, 'time')}, ${percent(link.rate)} ended well`;
  const pill = 14 + 6.5 * text.length;
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== 'Enter' && event.key !== ' ') return;
    event.preventDefault();
    onPin();
  };
  return (
    <g role="button" tabIndex={0} aria-label={label} aria-pressed={isPinned} className={cx(styles.link, styles[gradeOf(link.rate)], isDimmed && styles.dimmed)}
      onPointerEnter={() => onHover(true)} onPointerLeave={() => onHover(false)} onFocus={() => onHover(true)} onBlur={() => onHover(false)} onClick={onPin} onKeyDown={onKeyDown}>
      <path d={path} className={styles.hit} strokeWidth={Math.max(20, link.width)} />
      <path d={path} className={styles.ribbon} strokeWidth={link.width} />
      <path d={path} className={styles.core} />
      <rect x={to - 6 - pill} y={link.y2 - 10} width={pill} height={20} rx={10} className={styles.pill} />
      <text x={to - 6 - pill / 2} y={link.y2} dy="0.32em" textAnchor="middle" className={styles.label}>{text}</text>
    </g>
  );
}
