import type { RunStatus, Run } from '@/api/types';
import { capitalize } from '@/lib/format';

export const STATUSES: RunStatus[] = ['queued', 'running', 'waiting', 'completed', 'failed', 'cancelled', 'interrupted'];
export const PERIODS = { hour: 'Last hour', day: 'Last 24 hours', week: 'Last 7 days' } as const;
export type Period = keyof typeof PERIODS;

/** What the URL says about which runs are shown. */
export interface Filters {
  status?: RunStatus | undefined;
  agent?: string | undefined;
  user?: string | undefined;
  thread?: string | undefined;
  since?: Period | undefined;
  errors?: boolean | undefined;
  text?: string | undefined;
}

export const NO_FILTERS: Filters = { status: undefined, agent: undefined, user: undefined, thread: undefined, since: undefined, errors: undefined, text: undefined };

const HOURS: Record<Period, number> = { hour: 1, day: 24, week: 24 * 7 };

/** Reads filters from a URL. Values that mean nothing are left out. */
export function readFilters(params: URLSearchParams): Filters {
  const status = params.get('status') as RunStatus | null;
  const since = params.get('since');
  return {
    status: status && STATUSES.includes(status) ? status : undefined,
    agent: params.get('agent') || undefined,
    user: params.get('user') || undefined,
    thread: params.get('thread') || undefined,
    since: since && since in PERIODS ? (since as Period) : undefined,
    errors: params.get('errors') === '1' || undefined,
    text: params.get('q') || undefined,
  };
}

export function writeFilters(filters: Filters): URLSearchParams {
  const { status, agent, user, thread, since, errors, text } = filters;
  const entries = { status, agent, user, thread, since, errors: errors ? '1' : undefined, q: text };
  return new URLSearchParams(Object.entries(entries).filter((entry): entry is [string, string] => Boolean(entry[1])));
}

/** The start of a period as the API wants it. */
export function sinceDate(period: Period | undefined, now: number): string | undefined {
  return period && new Date(now - HOURS[period] * 3_600_000).toISOString();
}

/** What the server does not filter: errors and free text, over the rows that are loaded. */
export function matches(run: Run, { errors, text }: Filters, title: string | undefined, names: string[]): boolean {
  if (errors && !run.error && run.status !== 'failed') return false;
  const words = text?.trim().toLowerCase();
  if (!words) return true;
  const searched = [run.run_id, run.thread_id, run.agent, run.answered_by, run.user_id, run.status, run.error?.code, run.error?.message, title, ...names];
  return searched.some((value) => value?.toLowerCase().includes(words));
}

export interface Chip { key: keyof Filters; label: string; value: string }

export function chips(filters: Filters, agentName: (id: string) => string, threadTitle: (id: string) => string): Chip[] {
  const { status, agent, user, thread, since, errors } = filters;
  const found: (Chip | false | '' | undefined)[] = [
    status && { key: 'status', label: 'Status', value: capitalize(status) },
    agent && { key: 'agent', label: 'Agent', value: agentName(agent) },
    user && { key: 'user', label: 'User', value: user },
    thread && { key: 'thread', label: 'Conversation', value: threadTitle(thread) },
    since && { key: 'since', label: 'Time', value: PERIODS[since] },
    errors && { key: 'errors', label: 'Show', value: 'Errors only' },
  ];
  return found.filter((chip): chip is Chip => Boolean(chip));
}
