import { Maximize2, ZoomIn, ZoomOut } from 'lucide-react';
import { useMemo, type CSSProperties } from 'react';
import { IconButton } from '@/design';
import { Axis, Grid } from './Axis';
import { Legend } from './Legend';
import { MAX_ZOOM, percent, tickZoom, type Domain } from './scale';
import type { TimelineRow } from './segments';
import styles from './Timeline.module.css';
import { TimelineRowView } from './TimelineRow';
import { Tooltip } from './Tooltip';
import { useSegmentKeys } from './useSegmentKeys';
import { useTooltip } from './useTooltip';
import { useZoom } from './useZoom';

interface TimelineProps {
  rows: TimelineRow[];
  domain: Domain;
  /** While the run goes on. */
  now: number | undefined;
  selected: string | undefined;
  onStep: ((path: string) => void) | undefined;
}

const STEP = 1.6;

/** One row for each session, to scale. */
export function Timeline({ rows, domain, now, selected, onStep }: TimelineProps) {
  const { zoom, scroller, by, to, reset } = useZoom();
  const { hovered, handlers } = useTooltip(rows);
  const onKeyDown = useSegmentKeys(scroller, onStep);
  const onClick = (event: React.MouseEvent) => {
    const path = (event.target as HTMLElement).closest<HTMLElement>('[data-path]')?.dataset.path;
    if (path) onStep?.(path);
  };
  const attempts = useMemo(() => rows.some((row) => row.segments.some((segment) => segment.attempts > 1)), [rows]);
  return (
    <div className={styles.timeline}>
      <div className={styles.toolbar}>
        <Legend withAttempts={attempts} />
        <div className={styles.zoom} role="group" aria-label="Zoom">
          <IconButton icon={ZoomOut} size="small" label="Zoom out" disabled={zoom <= 1} onClick={() => by(1 / STEP)} />
          <span className={styles.level}>{Math.round(zoom * 100)} %</span>
          <IconButton icon={ZoomIn} size="small" label="Zoom in (or Ctrl and wheel, or drag on the time axis)" disabled={zoom >= MAX_ZOOM} onClick={() => by(STEP)} />
          <IconButton icon={Maximize2} size="small" label="Show everything" disabled={zoom <= 1} onClick={reset} />
        </div>
      </div>
      {/* The region scrolls and moves the focus between the calls: both need the keyboard. */}
      {/* eslint-disable-next-line jsx-a11y/no-noninteractive-element-interactions */}
      <div
        ref={scroller}
        role="region"
        aria-label="Timeline. Arrow keys move between calls, Enter opens the step."
        // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex
        tabIndex={0}
        className={styles.scroller}
        onKeyDown={onKeyDown}
        onClick={onClick}
        {...handlers}
      >
        <div className={styles.content} style={{ '--zoom': zoom } as CSSProperties}>
          <Axis domain={domain} zoom={tickZoom(zoom)} onRange={to} />
          <div className={styles.rows}>
            <Grid domain={domain} zoom={tickZoom(zoom)} />
            {rows.map((row) => <TimelineRowView key={row.node.id} row={row} domain={domain} now={row.end === undefined ? now : undefined} isSelected={row.node.id === selected} />)}
            {now !== undefined && <div className={styles.overlay}><div className={styles.now} style={{ insetInlineStart: `${percent(domain, now)}%` }} role="img" aria-label="Now" /></div>}
          </div>
        </div>
      </div>
      {hovered && <Tooltip {...hovered} />}
    </div>
  );
}
