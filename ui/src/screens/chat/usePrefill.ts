import { useEffect, useRef } from 'react';
import { useSearchState } from '@/lib/useSearchState';
import type { ComposerState } from './useComposer';

/** Fills the composer of a new conversation as a link asks for: `/?prompt=…`, `/?agent=…`. Removes the parameters, so that a reload does not fill it again. */
export function usePrefill(isNew: boolean, composer: ComposerState): void {
  const [params, change] = useSearchState();
  const prompt = params.get('prompt');
  const agent = params.get('agent') ?? undefined;
  const latest = useRef(composer);
  latest.current = composer;
  useEffect(() => {
    if (!isNew || (!prompt && !agent)) return;
    const { text, fill } = latest.current;
    fill(prompt ?? text, agent);
    change({ prompt: undefined, agent: undefined });
  }, [isNew, prompt, agent, change]);
}
