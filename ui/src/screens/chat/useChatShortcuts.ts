import { useCallback, useEffect, useRef, type RefObject } from 'react';
import { Problem, sentence } from '@/api/problem';

interface Options { area: RefObject<HTMLTextAreaElement | null>; activeRun: string | undefined; cancel: (runId: string) => Promise<void>; onProblem: (problem: string | undefined) => void }

/** `/` focuses the composer, Esc stops the answer. Returns what the stop button does. */
export function useChatShortcuts({ area, activeRun, cancel, onProblem }: Options): () => void {
  const stop = useCallback(() => {
    if (activeRun === undefined) return;
    onProblem(undefined);
    cancel(activeRun).catch((error: unknown) => {
      // It has ended in the meantime.
      if (!(error instanceof Problem && error.status === 409)) onProblem(sentence(error));
    });
  }, [activeRun, cancel, onProblem]);
  const latest = useRef(stop);
  latest.current = stop;
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.isComposing || document.querySelector('dialog[open], [role=menu]')) return;
      if (event.key === 'Escape') latest.current();
      if (event.key !== '/' || event.metaKey || event.ctrlKey || event.altKey || isTyping(event.target)) return;
      event.preventDefault();
      area.current?.focus();
    };
    document.addEventListener('keydown', onKeyDown);
    return () => document.removeEventListener('keydown', onKeyDown);
  }, [area]);
  return stop;
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}
