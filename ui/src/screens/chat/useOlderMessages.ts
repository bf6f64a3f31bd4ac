import { useEffect, useLayoutEffect, useRef, useState, type RefObject } from 'react';
import { sentence } from '@/api/problem';

interface Options { scroller: RefObject<HTMLDivElement | null>; firstKey: string | undefined; hasOlder: boolean; load: (onLoaded: () => void) => Promise<void> }

/** Loads earlier messages when their button comes into view, and keeps what is being read where it is. */
export function useOlderMessages({ scroller, firstKey, hasOlder, load }: Options) {
  const [isLoading, setIsLoading] = useState(false);
  const [problem, setProblem] = useState<string>();
  const button = useRef<HTMLDivElement>(null);
  const anchor = useRef<{ element: Element; top: number }>(undefined);

  const older = async () => {
    if (isLoading) return;
    const remember = () => {
      const element = button.current?.parentElement?.querySelector('[data-row]');
      if (element) anchor.current = { element, top: element.getBoundingClientRect().top };
    };
    setIsLoading(true);
    setProblem(undefined);
    try {
      await load(remember);
    } catch (error) {
      setProblem(sentence(error));
    } finally {
      setIsLoading(false);
    }
  };

  useLayoutEffect(() => {
    const kept = anchor.current;
    anchor.current = undefined;
    if (kept?.element.isConnected && scroller.current) scroller.current.scrollTop += kept.element.getBoundingClientRect().top - kept.top;
  }, [firstKey, scroller]);

  const latest = useRef(older);
  latest.current = older;
  useEffect(() => {
    const element = button.current;
    if (!element || !hasOlder || problem) return;
    let isFirst = true;
    const seen = new IntersectionObserver(([entry]) => {
      // The list opens at its end: the first report comes before it has scrolled there.
      if (entry?.isIntersecting && !isFirst) void latest.current();
      isFirst = false;
    }, { root: scroller.current, rootMargin: '200px 0px 0px 0px' });
    seen.observe(element);
    return () => seen.disconnect();
  }, [hasOlder, problem, scroller, firstKey]);
  return { button, isLoading, problem, older };
}
