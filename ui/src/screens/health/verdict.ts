import { sentence } from '@/api/problem';
import type { Roster, System } from '@/api/types';
import { plural } from '@/lib/format';

export type Level = 'ok' | 'attention' | 'failed';
export interface Issue { level: 'attention' | 'failed'; text: string; href?: string }
export interface Verdict { level: Level; title: string; issues: Issue[] }

export interface HealthFacts { system?: System | undefined; roster?: Roster | undefined; readinessError?: Error | null | undefined }

/** Whether the system works, and the issues if it does not. */
export function verdictOf({ system, roster, readinessError }: HealthFacts): Verdict {
  const issues: Issue[] = [];
  if (readinessError) issues.push({ level: 'failed', text: `The server is not ready: ${sentence(readinessError)}` });
  if (system && system.store.status !== 'ok') issues.push({ level: 'failed', text: 'The store is unavailable.' });
  const failed = system?.mcp_servers.filter((server) => server.state === 'failed') ?? [];
  if (failed.length > 0) issues.push({ level: 'attention', text: `${failed.length === 1 ? 'An MCP server' : plural(failed.length, 'MCP server')} failed: ${failed.map((server) => server.name).join(', ')}.` });
  if (roster?.status === 'last_good') issues.push({ level: 'attention', text: 'An agent file has an error; the last good version is active.', href: '/agents' });
  const level = issues.some((issue) => issue.level === 'failed') ? 'failed' : issues.length > 0 ? 'attention' : 'ok';
  return { level, title: { ok: 'All systems operational', attention: 'Needs attention', failed: 'Not working' }[level], issues };
}
