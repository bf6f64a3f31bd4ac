import { useCallback, useMemo, useState, type FocusEvent, type KeyboardEvent, type PointerEvent } from 'react';
import type { Segment, TimelineRow } from './segments';

export interface Hovered { row: TimelineRow; segment?: Segment | undefined; rect: DOMRect }

/** What the pointer or the focus is on. One listener for all rows; the rows themselves do not change. */
export function useTooltip(rows: TimelineRow[]) {
  const [target, setTarget] = useState<{ id: string; rect: DOMRect }>();
  const find = useCallback((event: { target: EventTarget }) => {
    const element = (event.target as Element).closest?.<HTMLElement>('[data-segment]');
    const id = element?.dataset.segment;
    setTarget((now) => (element && id ? (now?.id === id ? now : { id, rect: element.getBoundingClientRect() }) : undefined));
  }, []);
  const clear = useCallback(() => setTarget(undefined), []);
  const hovered = useMemo((): Hovered | undefined => {
    if (!target) return undefined;
    const row = rows.find(({ node }) => target.id === node.id || target.id.startsWith(`${node.id} `));
    return row && { row, rect: target.rect, segment: row.segments.find((segment) => target.id === `${row.node.id} ${segment.id}`) };
  }, [target, rows]);
  return {
    hovered,
    handlers: {
      onPointerOver: find as (event: PointerEvent) => void,
      onPointerLeave: clear,
      onFocus: find as (event: FocusEvent) => void,
      onBlur: clear,
      onScroll: clear,
      onKeyUp: (event: KeyboardEvent) => event.key === 'Escape' && clear(),
    },
  };
}
