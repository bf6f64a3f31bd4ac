import type { KeyboardEvent, RefObject } from 'react';

/** Arrow keys go through the calls of a row and from row to row; the tab key leaves the timeline. */
export function useSegmentKeys(scroller: RefObject<HTMLElement | null>, onStep: ((path: string) => void) | undefined) {
  return (event: KeyboardEvent) => {
    const root = scroller.current;
    if (!root || event.ctrlKey || event.metaKey || event.altKey) return;
    const focused = document.activeElement as HTMLElement;
    const path = focused.dataset.path;
    if (event.key === 'Enter' && path) {
      event.preventDefault();
      return onStep?.(path);
    }
    const next = nextSegment(root, focused, event.key);
    if (!next) return;
    event.preventDefault();
    next.focus({ preventScroll: true });
    next.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  };
}

function nextSegment(root: HTMLElement, focused: HTMLElement, key: string): HTMLElement | undefined {
  if (!['ArrowLeft', 'ArrowRight', 'ArrowUp', 'ArrowDown'].includes(key)) return undefined;
  const rows = [...root.querySelectorAll<HTMLElement>('[data-row]')].map((row) => [...row.querySelectorAll<HTMLElement>('[data-path]')]).filter((row) => row.length > 0);
  const at = rows.findIndex((row) => row.includes(focused));
  if (at < 0) return rows[0]?.[0];
  const row = rows[at] ?? [];
  const column = row.indexOf(focused);
  if (key === 'ArrowLeft') return row[column - 1];
  if (key === 'ArrowRight') return row[column + 1];
  const other = rows[key === 'ArrowUp' ? at - 1 : at + 1];
  return other?.[Math.min(column, other.length - 1)];
}
