import { describe, expect, it } from 'vitest';
import type { Session } from '@/api/types';
import type { RunState, SubAgent } from '@/thread/state';
import { liveRows, storedRows, summaryOf } from './agentRows';
import { totalOf } from './total';
import { matching, mentionAt } from './useAgentPicker';

const one = (id: string, parent?: string): SubAgent => ({ id, parent, agent: id, name: id, status: 'done', startedAt: 0, text: '', tools: [] });
const runOf = (change: Partial<RunState>): RunState => ({ id: 'r', agent: 'assistant', status: 'completed', startedAt: 0, subAgents: [], sources: [], approvals: [], ...change });

describe('rows of sub-agents', () => {
  it('puts children below their parents, and keeps those whose parent is unknown', () => {
    const rows = liveRows(runOf({ subAgents: [one('a'), one('b'), one('a1', 'a'), one('lost', 'gone')] }));
    expect(rows.map(({ id, depth }) => [id, depth])).toEqual([['a', 0], ['a1', 1], ['b', 0], ['lost', 0]]);
  });

  it('leaves out the one who answered and those who took over', () => {
    const usage = { cached_tokens: 0, cost_known: true, cost_usd: '0', estimated: false, input_tokens: 0, output_tokens: 0, reasoning_tokens: 0 };
    const session = (agent: string, path: string, sessions: Session[] = []): Session =>
      ({ agent, path, sessions, session_id: agent, calls: { failed: 0, models: 0, tools: 0 }, own: usage, subtree: usage, started_at: '2026-01-01T00:00:00Z', status: 'completed' });
    const tree = [session('assistant', 'assistant', [session('creator', 'assistant/turn:1/tool:1/transfer:creator'), session('research', 'assistant/turn:1/tool:2/delegate:research')])];
    expect(storedRows(tree).map(({ agent }) => agent)).toEqual(['research']);
  });

  it('says who works, who is done and who failed', () => {
    expect(summaryOf(['running', 'running', 'running', 'done', 'done'])).toBe('3 agents working, 2 done');
    expect(summaryOf(['done'])).toBe('1 agent contributed');
    expect(summaryOf(['done', 'done', 'failed'])).toBe('2 agents contributed, 1 failed');
  });
});

describe('the sum of runs', () => {
  it('is a lower bound when a price is unknown', () => {
    const usage = (cost_usd: string, cost_known: boolean) => ({ input_tokens: 10, output_tokens: 5, cost_known, cost_usd });
    expect(totalOf([runOf({ usage: usage('0.5', true) }), runOf({ usage: usage('0', false) }), runOf({})])).toEqual({ runs: 3, usd: 0.5, tokens: 30, isKnown: false });
  });
});

describe('mentions', () => {
  it('finds the word after an @ before the caret', () => {
    expect(mentionAt('ask @kno', 8)).toBe('kno');
    expect(mentionAt('@', 1)).toBe('');
    expect(mentionAt('me@example.com', 14)).toBeUndefined();
    expect(mentionAt('@kno later', 10)).toBeUndefined();
  });

  it('lists visible agents, those that begin with the word first', () => {
    const agent = (id: string, hidden = false) => ({ id, display_name: id, badge: { color: 'blue', hidden } }) as Parameters<typeof matching>[0][number];
    expect(matching([agent('my-research'), agent('research'), agent('research-old', true), agent('other')], 're').map(({ id }) => id)).toEqual(['research', 'my-research']);
  });
});
