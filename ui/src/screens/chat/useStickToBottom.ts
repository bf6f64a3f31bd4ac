import { useCallback, useLayoutEffect, useRef, useState, type RefObject } from 'react';

/** Nearer to the end than this counts as being at the end. */
const NEAR = 64;

export interface StickToBottom {
  scroller: RefObject<HTMLDivElement | null>;
  content: RefObject<HTMLDivElement | null>;
  isAtEnd: boolean;
  toEnd: () => void;
}

/** Keeps the end of a growing list in view until the reader scrolls up. Does nothing while the list is empty. */
export function useStickToBottom(isEmpty: boolean): StickToBottom {
  const scroller = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const follows = useRef(true);
  const [isAtEnd, setIsAtEnd] = useState(true);

  const toEnd = useCallback(() => {
    follows.current = true;
    setIsAtEnd(true);
    const element = scroller.current;
    if (element) element.scrollTop = element.scrollHeight;
  }, []);

  useLayoutEffect(() => {
    const element = scroller.current;
    const inner = content.current;
    if (!element || !inner || isEmpty) return;
    if (follows.current) element.scrollTop = element.scrollHeight;
    let top = element.scrollTop;
    const onScroll = () => {
      const distance = element.scrollHeight - element.clientHeight - element.scrollTop;
      // Growing content does not end the following; only a scroll upwards does.
      if (distance < NEAR) follows.current = true;
      else if (element.scrollTop < top) follows.current = false;
      top = element.scrollTop;
      setIsAtEnd(follows.current);
    };
    const grown = new ResizeObserver(() => {
      if (follows.current) element.scrollTop = element.scrollHeight;
      else onScroll();
    });
    grown.observe(inner);
    grown.observe(element);
    element.addEventListener('scroll', onScroll, { passive: true });
    return () => {
      grown.disconnect();
      element.removeEventListener('scroll', onScroll);
    };
  }, [isEmpty]);

  return { scroller, content, isAtEnd, toEnd };
}
