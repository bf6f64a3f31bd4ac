import { describe, expect, it } from 'vitest';
import type { Session } from '@/api/types';
import type { RunState, SubAgent } from '@/thread/state';
import { liveRows, storedRows, summaryOf } from './agentRows';

const one = (id: string, parent?: string): SubAgent => ({ id, parent, agent: id, name: id, status: 'done', startedAt: 0, text: '', tools: [] });
const runOf = (change: Partial<RunState>): RunState => ({ id: 'r', agent: 'assistant', status: 'completed', startedAt: 0, subAgents: [], sources: [], ...change });

describe('rows of sub-agents', () => {
  it('puts children below their parents, and keeps those whose parent is unknown', () => {
    const rows = liveRows(runOf({ subAgents: [one('a'), one('b'), one('a1', 'a'), one('lost', 'gone')] }));
    expect(rows.map(({ id, depth }) => [id, depth])).toEqual([['a', 0], ['a1', 1], ['b', 0], ['lost', 0]]);
  });

  it('leaves out the one who answered and those who took over', () => {
    const usage = { cached_tokens: 0, cache_write_tokens: 0, cost_known: true, cost_usd: '0', estimated: false, input_tokens: 0, output_tokens: 0, reasoning_tokens: 0 };
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
