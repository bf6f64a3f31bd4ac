import { memo, useMemo, useRef, useState, type PointerEvent } from 'react';
import { tickLabel, ticks, type Domain } from './scale';
import styles from './Timeline.module.css';

const COUNT = 5;
const MAX_COUNT = 400;

function useTicks(domain: Domain, zoom: number) {
  const length = domain.end - domain.start;
  return useMemo(() => ticks(domain, Math.min(MAX_COUNT, COUNT * zoom)).map((offset) => ({ offset, left: `${(100 * offset) / length}%` })), [domain, length, zoom]);
}

/** The time since the run was created. Dragging over it magnifies that part. */
export const Axis = memo(function Axis({ domain, zoom, onRange }: { domain: Domain; zoom: number; onRange: (from: number, to: number) => void }) {
  const shown = useTicks(domain, zoom);
  const track = useRef<HTMLDivElement>(null);
  const [range, setRange] = useState<[number, number]>();
  const fraction = (event: PointerEvent) => {
    const { left, width } = track.current!.getBoundingClientRect();
    return Math.min(1, Math.max(0, (event.clientX - left) / width));
  };
  const onPointerDown = (event: PointerEvent) => {
    if (event.button !== 0) return;
    event.currentTarget.setPointerCapture(event.pointerId);
    setRange([fraction(event), fraction(event)]);
  };
  const onPointerUp = (event: PointerEvent) => {
    if (!range) return;
    const [from, to] = [Math.min(range[0], fraction(event)), Math.max(range[0], fraction(event))];
    setRange(undefined);
    // A click is no range.
    if ((to - from) * track.current!.offsetWidth > 6) onRange(from, to);
  };
  return (
    <div className={styles.axis}>
      <div className={styles.corner} data-label>Agent</div>
      <div ref={track} className={styles.axisTrack} aria-hidden onPointerDown={onPointerDown} onPointerMove={(event) => range && setRange([range[0], fraction(event)])} onPointerUp={onPointerUp} onPointerCancel={() => setRange(undefined)}>
        {shown.map(({ offset, left }) => <span key={offset} className={styles.tick} style={{ insetInlineStart: left }}>{tickLabel(offset)}</span>)}
        {range && <div className={styles.brush} style={{ insetInlineStart: `${100 * Math.min(...range)}%`, width: `${100 * Math.abs(range[1] - range[0])}%` }} />}
      </div>
    </div>
  );
});

export const Grid = memo(function Grid({ domain, zoom }: { domain: Domain; zoom: number }) {
  const shown = useTicks(domain, zoom);
  return <div className={styles.overlay} aria-hidden>{shown.map(({ offset, left }) => <div key={offset} className={styles.line} style={{ insetInlineStart: left }} />)}</div>;
});
