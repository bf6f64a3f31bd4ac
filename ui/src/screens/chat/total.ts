import { tokens } from '@/lib/format';
import type { RunState } from '@/thread/state';

/** What several runs took together. One unknown price makes the sum a lower bound. */
export function totalOf(runs: RunState[]): { runs: number; usd: number; tokens: number; isKnown: boolean } {
  const usages = runs.flatMap(({ usage }) => (usage ? [usage] : []));
  return {
    runs: runs.length,
    usd: usages.reduce((sum, { cost_usd }) => sum + Number(cost_usd), 0),
    tokens: usages.reduce((sum, usage) => sum + tokens(usage), 0),
    isKnown: usages.every(({ cost_known }) => cost_known),
  };
}
