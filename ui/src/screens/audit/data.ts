import { infiniteQueryOptions } from '@tanstack/react-query';
import { api, data, type Schemas } from '@/api/client';
import type { Tone } from '@/design';

export type Entry = Schemas['AuditView'];
export type Verdict = Schemas['VerdictBody'];
export type Period = '24h' | '7d' | '30d' | 'all';

export const PERIODS: { value: Period; label: string }[] = [
  { value: '24h', label: '24 h' },
  { value: '7d', label: '7 d' },
  { value: '30d', label: '30 d' },
  { value: 'all', label: 'All' },
];

const HOURS: Record<Period, number> = { '24h': 24, '7d': 7 * 24, '30d': 30 * 24, all: 0 };

/** What the route filters by. */
export interface Filter { actor?: string | undefined; action?: string | undefined; thread_id?: string | undefined; since?: string | undefined }

export const FILTERS = [
  { name: 'actor', label: 'Actor', placeholder: 'User, agent or system' },
  { name: 'action', label: 'Action', placeholder: 'Such as thread.delete' },
  { name: 'thread_id', label: 'Thread', placeholder: 'Thread id' },
] as const;
export type FilterName = (typeof FILTERS)[number]['name'];

/** The actions that Baton records, for suggestions. */
export const ACTIONS = [
  'agent.advise', 'agent.call', 'agent.chain', 'agent.delegate', 'agent.return', 'agent.route', 'agent.team', 'agent.transfer', 'approval.decide', 'approval.list', 'artifact.create', 'feedback.give',
  'handoff.end', 'handoff.exit', 'handoff.request', 'handoff.resume', 'handoff.return', 'handoff.start', 'key.create', 'key.revoke', 'message.send', 'permission.refuse', 'run.cancel', 'run.end', 'run.list', 'run.resume', 'run.start', 'thread.delete', 'thread.list', 'thread.read', 'tool.call',
];

/** From when on; a moment in the address is taken as it is. Whole minutes, so that all pages of a list ask for the same. */
export function sinceOf(text: string | null, now: number): string | undefined {
  const period = periodOf(text);
  if (period === undefined) return new Date(text ?? '').toISOString();
  if (period === 'all') return undefined;
  return new Date(Math.floor(now / 60_000) * 60_000 - HOURS[period] * 3_600_000).toISOString();
}

/** The named period; `undefined` for a moment. Anything else is the last 24 hours. */
export function periodOf(text: string | null): Period | undefined {
  const named = PERIODS.find(({ value }) => value === text)?.value;
  if (named) return named;
  return text !== null && Number.isFinite(Date.parse(text)) ? undefined : '24h';
}

/** The empty values left out: the server refuses them. */
export function queryOf(filter: Filter): Filter {
  return Object.fromEntries(Object.entries(filter).filter(([, value]) => value)) as Filter;
}

export async function page(filter: Filter, cursor: string | undefined, limit: number, signal?: AbortSignal) {
  const query = { ...queryOf(filter), order: 'desc' as const, limit, ...(cursor ? { cursor } : {}) };
  return data(api.GET('/api/v1/audit', { params: { query }, ...(signal ? { signal } : {}) }));
}

export const auditQuery = (filter: Filter) =>
  infiniteQueryOptions({
    queryKey: ['audit', filter],
    queryFn: ({ pageParam, signal }) => page(filter, pageParam, 50, signal),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.next_cursor ?? undefined,
  });

/** How an entry is named: its chain and its number in it. */
export const placeOf = ({ chain, number }: { chain: number; number: number }) => `${chain}.${number}`;

/** How a decision reads: good, bad, or neither. */
export function toneOf(decision: string): Tone {
  if (['allowed', 'accepted', 'completed', 'approved', 'ok'].includes(decision)) return 'success';
  if (['denied', 'failed', 'rejected', 'error', 'refused'].includes(decision)) return 'danger';
  if (['cancelled', 'interrupted', 'expired', 'timeout', 'abandoned'].includes(decision)) return 'warning';
  return 'neutral';
}
