import { useLayoutEffect, type RefObject } from 'react';

const LINE = 24;
const MAX_LINES = 8;

/** Makes a text area as high as its text, up to eight lines. */
export function useAutosize(area: RefObject<HTMLTextAreaElement | null>, text: string): void {
  useLayoutEffect(() => {
    const element = area.current;
    if (!element) return;
    element.style.height = 'auto';
    element.style.height = `${Math.min(element.scrollHeight, LINE * MAX_LINES)}px`;
    element.style.overflowY = element.scrollHeight > LINE * MAX_LINES ? 'auto' : 'hidden';
  }, [area, text]);
}
