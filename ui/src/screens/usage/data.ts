import { queryOptions } from '@tanstack/react-query';
import { api, data, type Schemas } from '@/api/client';
import type { Usage } from '@/api/types';
import { compact, cost, tokens } from '@/lib/format';

export type Line = Schemas['UsageLineView'];
export type Budget = Schemas['BudgetView'];
export type By = 'day' | 'agent' | 'user' | 'model';
export type Range = '24h' | '7d' | '30d' | 'all';
export type Measure = 'cost' | 'tokens';

export const RANGES: { value: Range; label: string }[] = [
  { value: '24h', label: '24 h' },
  { value: '7d', label: '7 d' },
  { value: '30d', label: '30 d' },
  { value: 'all', label: 'All' },
];

const HOUR = 3_600_000;
export const DAY = 24 * HOUR;

/** From when on a range counts: whole hours, and whole days in UTC, today included. */
export function sinceOf(range: Range, now: number): string | undefined {
  switch (range) {
    case '24h': return new Date(Math.floor(now / HOUR) * HOUR - DAY).toISOString();
    case '7d': return new Date(Math.floor(now / DAY) * DAY - 6 * DAY).toISOString();
    case '30d': return new Date(Math.floor(now / DAY) * DAY - 29 * DAY).toISOString();
    case 'all': return undefined;
  }
}

export const usageQuery = (by: By, range: Range, user: string | undefined) =>
  queryOptions({
    queryKey: ['usage', by, range, user ?? ''],
    queryFn: async () => {
      const since = sinceOf(range, Date.now());
      const query = { by, ...(since ? { since } : {}), ...(user ? { user_id: user } : {}) };
      return data(api.GET('/api/v1/usage', { params: { query } }));
    },
    staleTime: 30_000,
  });

/** Lines added up. A sum is known only if every part is. */
export function total(lines: Line[], key = ''): Line {
  const add = (pick: (line: Line) => number) => lines.reduce((sum, line) => sum + pick(line), 0);
  return {
    key,
    runs: add((line) => line.runs),
    model_calls: add((line) => line.model_calls),
    tool_calls: add((line) => line.tool_calls),
    usage: {
      input_tokens: add((line) => line.usage.input_tokens),
      output_tokens: add((line) => line.usage.output_tokens),
      cached_tokens: add((line) => line.usage.cached_tokens),
      cache_write_tokens: add((line) => line.usage.cache_write_tokens),
      reasoning_tokens: add((line) => line.usage.reasoning_tokens),
      cost_usd: String(add((line) => Number(line.usage.cost_usd))),
      cost_known: lines.every((line) => line.usage.cost_known),
      estimated: lines.some((line) => line.usage.estimated),
    },
  };
}

/** What a bar shows: its length, the text beside it, and whether a part without a price has to be hatched. */
export interface Amount { value: number; label: string; isPartial: boolean }

export function amountOf(usage: Usage, measure: Measure): Amount {
  if (measure === 'cost') return { value: Number(usage.cost_usd), label: cost(usage), isPartial: !usage.cost_known };
  const value = tokens(usage);
  return { value, label: compact(value), isPartial: false };
}

/** Money if there is any to show, tokens where everything is free or no price is known. */
export function defaultMeasure(sum: Line): Measure {
  return Number(sum.usage.cost_usd) === 0 ? 'tokens' : 'cost';
}

export const CSV_HEADER = ['runs', 'model_calls', 'tool_calls', 'input_tokens', 'output_tokens', 'cached_tokens', 'cache_write_tokens', 'reasoning_tokens', 'cost_usd', 'cost_known', 'estimated'];

/** The exact numbers of a line, in the order of `CSV_HEADER`. A price that is not known at all stays empty. */
export function csvRow({ key, runs, model_calls, tool_calls, usage }: Line) {
  const price = !usage.cost_known && Number(usage.cost_usd) === 0 ? undefined : usage.cost_usd;
  return [key, runs, model_calls, tool_calls, usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.cache_write_tokens, usage.reasoning_tokens, price, usage.cost_known, usage.estimated];
}
