import { queryOptions } from '@tanstack/react-query';
import { api, data } from '@/api/client';
import type { Sort } from '@/design';

export const patternsQuery = () =>
  queryOptions({
    queryKey: ['patterns'],
    queryFn: async () => await data(api.GET('/api/v1/patterns')),
    staleTime: 30_000,
  });

export type Learnt = Awaited<ReturnType<NonNullable<ReturnType<typeof patternsQuery>['queryFn']>>>;
/** All passes from one agent to another for one class of questions. */
export type Pattern = Learnt['data'][number];
/** How well agents serve one class of questions. */
export type Insight = Learnt['insights'][number];
export type Kind = Pattern['kind'];

export const KINDS: Record<Kind, { label: string; explanation: string }> = {
  handoff: { label: 'Handoff', explanation: 'the thread itself was handed over' },
  transfer: { label: 'Transfer', explanation: 'a model passed the run to a colleague' },
  route: { label: 'Route', explanation: 'a router chose' },
  chain: { label: 'Chain', explanation: 'an agent file names who comes next' },
  delegation: { label: 'Delegation', explanation: 'an agent got a task, and its result went back to the caller' },
  advice: { label: 'Advice', explanation: 'an advisor was asked before the answer' },
  team: { label: 'Team', explanation: 'a member contributed to a round of a team' },
};

export interface Filter { kind?: string | undefined; agent?: string | undefined }

export function filtered(patterns: Pattern[], { kind, agent }: Filter): Pattern[] {
  return patterns.filter((one) => (!kind || one.kind === kind) && (!agent || one.from === agent || one.to === agent));
}

export function agentsIn(patterns: Pattern[]): string[] {
  return [...new Set(patterns.flatMap(({ from, to }) => [from, to]))].sort();
}

const VALUES: Record<string, (one: Pattern) => string | number> = {
  kind: (one) => one.kind,
  from: (one) => one.from,
  to: (one) => one.to,
  class: (one) => one.query_class,
  count: (one) => one.count,
  success: (one) => one.success_rate,
  latency: (one) => one.average_latency_ms,
  cost: (one) => one.average_cost_usd,
  feedback: (one) => one.liked - one.disliked,
  last: (one) => Date.parse(one.last_at),
};

/** `-count` in the address: descending by count. */
export function sortOf(text: string | null): Sort {
  const key = text?.replace(/^-/, '') ?? '';
  return key in VALUES ? { key, descending: text?.startsWith('-') ?? false } : { key: 'count', descending: true };
}

/** The other direction for the same column; numbers begin with the largest, texts with A. */
export function nextSort(sort: Sort, key: string): string {
  const isText = ['kind', 'from', 'to', 'class'].includes(key);
  const descending = sort.key === key ? !sort.descending : !isText;
  return descending ? `-${key}` : key;
}

export function sorted(patterns: Pattern[], { key, descending }: Sort): Pattern[] {
  const value = VALUES[key];
  if (!value) return patterns;
  const order = patterns.toSorted((a, b) => {
    const [left, right] = [value(a), value(b)];
    return typeof left === 'string' ? left.localeCompare(String(right)) : left - Number(right);
  });
  return descending ? order.reverse() : order;
}

/** How well a path ends, as a word: the line style of the diagram has the same three steps. */
export function gradeOf(rate: number): 'good' | 'mixed' | 'poor' {
  return rate >= 0.9 ? 'good' : rate >= 0.6 ? 'mixed' : 'poor';
}

export function percent(rate: number): string {
  // 99.6 % is not "always".
  const rounded = Math.round(rate * 100);
  return `${rounded === 100 && rate < 1 ? 99 : rounded} %`;
}
