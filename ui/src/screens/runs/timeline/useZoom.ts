import { useCallback, useEffect, useLayoutEffect, useRef, useState, type RefObject } from 'react';
import { zoomAt, zoomTo, type View } from './scale';

interface Zoom {
  zoom: number;
  scroller: RefObject<HTMLDivElement | null>;
  by: (factor: number) => void;
  to: (from: number, to: number) => void;
  reset: () => void;
}

const WHEEL = 0.0025;

/**
 * Magnification by width: the browser scrolls and lays out, and no row is rendered again.
 */
export function useZoom(): Zoom {
  const scroller = useRef<HTMLDivElement>(null);
  const [view, setView] = useState<View>({ zoom: 1, left: 0 });

  useLayoutEffect(() => {
    if (scroller.current) scroller.current.scrollLeft = view.left;
  }, [view]);

  const at = useCallback((factor: number, clientX?: number) => {
    const element = scroller.current;
    if (!element) return;
    const { left, width } = trackOf(element);
    const anchor = clientX === undefined ? width / 2 : Math.min(width, Math.max(0, clientX - left));
    setView(({ zoom }) => zoomAt({ zoom, left: element.scrollLeft }, factor, anchor, width));
  }, []);

  useEffect(() => {
    const element = scroller.current;
    if (!element) return;
    let turned = 0;
    let frame = 0;
    const onWheel = (event: WheelEvent) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      turned += event.deltaY;
      frame ||= requestAnimationFrame(() => {
        at(Math.exp(-turned * WHEEL), event.clientX);
        turned = 0;
        frame = 0;
      });
    };
    element.addEventListener('wheel', onWheel, { passive: false });
    return () => {
      element.removeEventListener('wheel', onWheel);
      cancelAnimationFrame(frame);
    };
  }, [at]);

  const to = useCallback((from: number, until: number) => {
    if (scroller.current) setView(zoomTo(from, until, trackOf(scroller.current).width));
  }, []);
  return { zoom: view.zoom, scroller, by: at, to, reset: useCallback(() => setView({ zoom: 1, left: 0 }), []) };
}

/** The visible part of the tracks: what is right of the labels. */
function trackOf(scroller: HTMLElement): { left: number; width: number } {
  const label = scroller.querySelector<HTMLElement>('[data-label]')?.offsetWidth ?? 0;
  return { left: scroller.getBoundingClientRect().left + label, width: scroller.clientWidth - label };
}
