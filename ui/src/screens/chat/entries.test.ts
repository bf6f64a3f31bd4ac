import { describe, expect, it } from 'vitest';
import { emptyThread, type Item, type RunState, type ThreadState } from '@/thread/state';
import { entriesOf } from './entries';

const user = (id: string, runId: string): Item => ({ kind: 'message', id, role: 'user', runId, text: id, attachments: [], at: 1, status: 'done' });
const agent = (id: string, runId: string, status: 'done' | 'streaming' = 'done'): Item => ({ kind: 'message', id, role: 'assistant', runId, agent: 'assistant', text: id, attachments: [], at: 2, status });
const run = (id: string, change: Partial<RunState> = {}): RunState => ({ id, agent: 'assistant', status: 'completed', startedAt: 1, subAgents: [], sources: [], ...change });
const thread = (items: Item[], runs: RunState[], change: Partial<ThreadState> = {}): ThreadState => ({ ...emptyThread, items, runs: Object.fromEntries(runs.map((one) => [one.id, one])), ...change });
const keys = (state: ThreadState) => entriesOf(state).map(({ key }) => key);

describe('entriesOf', () => {
  it('puts helpers before the answer', () => {
    expect(keys(thread([user('q', 'r'), agent('a', 'r')], [run('r', { sources: [{ agent: 'research', session_id: 's' }] })]))).toEqual(['q', 'r:agents', 'a']);
  });

  it('shows what a run does until its text streams', () => {
    const running = run('r', { status: 'running' });
    expect(keys(thread([user('q', 'r')], [running], { activeRun: 'r' }))).toEqual(['q', 'r:state']);
    expect(keys(thread([user('q', 'r'), agent('a', 'r', 'streaming')], [running], { activeRun: 'r' }))).toEqual(['q', 'a']);
  });

  it('shows why a run failed after all it said, with the question to ask again', () => {
    const [, , note] = entriesOf(thread([user('q', 'r'), agent('a', 'r')], [run('r', { status: 'failed' })]));
    expect(note).toMatchObject({ kind: 'state', question: { id: 'q' } });
  });

  it('calls a message queued only behind another run', () => {
    const queued = run('r2', { status: 'queued' });
    const behind = entriesOf(thread([user('q1', 'r1'), user('q2', 'r2')], [run('r1', { status: 'running' }), queued], { activeRun: 'r1' }));
    expect(behind.find(({ key }) => key === 'q2')).toMatchObject({ isQueued: true });
    const alone = entriesOf(thread([user('q2', 'r2')], [queued]));
    expect(alone).toMatchObject([{ key: 'q2', isQueued: false }, { key: 'r2:state' }]);
  });

  it('shows a run that began elsewhere', () => {
    expect(keys(thread([], [run('r', { status: 'running' })], { activeRun: 'r' }))).toEqual(['r:state']);
  });

  it('closes a run with its last answer only', () => {
    const entries = entriesOf(thread([user('q', 'r'), agent('a', 'r'), agent('b', 'r')], [run('r')]));
    expect(entries.map((entry) => entry.kind === 'message' && entry.closesRun)).toEqual([false, false, true]);
  });
});
