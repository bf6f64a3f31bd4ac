import { describe, expect, it } from 'vitest';
import type { RunState } from '@/thread/state';
import { totalOf } from './total';

const runOf = (change: Partial<RunState>): RunState => ({ id: 'r', agent: 'assistant', status: 'completed', startedAt: 0, subAgents: [], sources: [], ...change });

describe('the sum of runs', () => {
  it('is a lower bound when a price is unknown', () => {
    const usage = (cost_usd: string, cost_known: boolean) => ({ input_tokens: 10, output_tokens: 5, cost_known, cost_usd });
    expect(totalOf([runOf({ usage: usage('0.5', true) }), runOf({ usage: usage('0', false) }), runOf({})])).toEqual({ runs: 3, usd: 0.5, tokens: 30, isKnown: false });
  });
});
