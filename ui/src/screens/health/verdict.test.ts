import { describe, expect, it } from 'vitest';
import { Problem } from '@/api/problem';
import type { Roster, System } from '@/api/types';
import { verdictOf } from './verdict';

const system = (more: Partial<System> = {}): System => ({ version: '1', store: { kind: 'sqlite', status: 'ok' }, default_model: 'offline', offline: true, providers: [], mcp_servers: [], agents: 1, active_runs: 0, started_at: '', ...more });

describe('verdictOf', () => {
  it('is fine without issues; the offline model is none', () => {
    expect(verdictOf({ system: system() })).toMatchObject({ level: 'ok', issues: [] });
  });

  it('needs attention when an MCP server or an agent file fails', () => {
    const failed = { name: 'github', transport: 'http' as const, state: 'failed' as const };
    const verdict = verdictOf({ system: system({ mcp_servers: [failed] }), roster: { status: 'last_good' } as Roster });
    expect(verdict.level).toBe('attention');
    expect(verdict.issues.map((issue) => issue.text)).toEqual(['An MCP server failed: github.', 'An agent file has an error; the last good version is active.']);
  });

  it('fails when the server is not ready, and says why', () => {
    const verdict = verdictOf({ system: system(), readinessError: new Problem(503, 'draining', 'shutting down') });
    expect(verdict).toMatchObject({ level: 'failed', issues: [{ text: 'The server is not ready: Shutting down.' }] });
  });

  it('fails when the store does', () => {
    expect(verdictOf({ system: system({ store: { kind: 'postgres', status: 'unavailable' } }) }).level).toBe('failed');
  });
});
