import { describe, expect, it } from 'vitest';
import type { Run } from '@/api/types';
import { chips, matches, readFilters, sinceDate, writeFilters } from './filters';

const usage = { input_tokens: 0, output_tokens: 0, cached_tokens: 0, cache_write_tokens: 0, reasoning_tokens: 0, cost_usd: '0.00', cost_known: true, estimated: false };
const run = (more: Partial<Run> = {}): Run => ({ run_id: 'r1', thread_id: 't1', user_id: 'dora', agent: 'assistant', status: 'completed', created_at: '2026-01-01T00:00:00Z', usage, sources: [], ...more });

describe('filters', () => {
  it('survive the way through the URL', () => {
    const filters = { status: 'failed', agent: 'research', user: 'dora', thread: 't1', since: 'week', errors: true, text: 'time out' } as const;
    expect(readFilters(writeFilters(filters))).toEqual(filters);
    expect(writeFilters({}).toString()).toBe('');
  });

  it('ignore unknown values', () => {
    expect(readFilters(new URLSearchParams('status=odd&since=century&errors=yes'))).toEqual({});
  });

  it('turn a period into a time', () => {
    const now = Date.parse('2026-01-02T12:00:00Z');
    expect(sinceDate('day', now)).toBe('2026-01-01T12:00:00.000Z');
    expect(sinceDate(undefined, now)).toBeUndefined();
  });

  it('match text in ids, names, titles and errors', () => {
    const failed = run({ status: 'failed', error: { code: 'timeout', message: 'no answer within 30 s' } });
    expect(matches(failed, { text: '30 S' }, undefined, [])).toBe(true);
    expect(matches(run(), { text: 'slack' }, 'Slack alerts', [])).toBe(true);
    expect(matches(run(), { text: 'main' }, undefined, ['Main assistant'])).toBe(true);
    expect(matches(run(), { text: 'slack' }, undefined, [])).toBe(false);
  });

  it('keep only runs with errors', () => {
    expect(matches(run(), { errors: true }, undefined, [])).toBe(false);
    expect(matches(run({ status: 'failed' }), { errors: true }, undefined, [])).toBe(true);
  });

  it('become chips', () => {
    const made = chips({ agent: 'research', since: 'hour', text: 'x' }, (id) => id.toUpperCase(), (id) => id);
    expect(made).toEqual([{ key: 'agent', label: 'Agent', value: 'RESEARCH' }, { key: 'since', label: 'Time', value: 'Last hour' }]);
  });
});
