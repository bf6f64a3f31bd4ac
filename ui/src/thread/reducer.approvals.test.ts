import { describe, expect, it } from 'vitest';
import type { AguiEvent } from '@/api/events';
import type { ListedApproval } from '@/approvals/record';
import type { Action } from './reducer';
import { accepted, events, finished, origin, play, said, sending, started, stored, texts } from './reducer.testing';
import type { ThreadState } from './state';

const approval = (id: string, change: Partial<ListedApproval> = {}): ListedApproval => ({
  approval_id: id, thread_id: 't', run_id: 'r1', kind: 'tool', path: 'assistant/turn:1/tool:1', agent: 'assistant', tool: id, arguments: {}, digest: 'd', risk: 'high',
  preview: { heading: '' }, status: 'pending', created_at: '2026-01-01T00:00:01Z', expires_at: '2026-01-02T00:00:00Z', ...change,
});
const asked = (id: string, change: Partial<ListedApproval> = {}): AguiEvent => ({ type: 'CUSTOM', name: 'baton.approval', metadata: origin('r1'), value: approval(id, change) });
const parked: AguiEvent = { type: 'RUN_FINISHED', threadId: 't', runId: 'r1', timestamp: 5, metadata: origin('r1'), outcome: { type: 'interrupt' } };
const statuses = (state: ThreadState) => state.items.flatMap((item) => (item.kind === 'request' ? [`${item.id}: ${item.approval.status}`] : []));

describe('requests', () => {
  const first = [sending('local:1', 'Write it'), accepted('local:1', 'm1', 'r1'), events(started('r1'), ...said('r1', 'a1', 'One moment.'), asked('write_file'), parked)];

  it('stand where the run stopped, which then waits', () => {
    const state = play(first);
    expect(texts(state)).toEqual(['Write it', 'One moment.', '? write_file']);
    expect(state.runs.r1).toMatchObject({ status: 'waiting' });
    expect(state.activeRun).toBeUndefined();
  });

  it('stay at their place when they are settled and the run continues', () => {
    const state = play([...first, events(asked('write_file', { status: 'approved', decided_by: 'ada' }), started('r1'), ...said('r1', 'a2', 'Done.'), finished('r1'))]);
    expect(texts(state)).toEqual(['Write it', 'One moment.', '? write_file', 'Done.']);
    expect(statuses(state)).toEqual(['write_file: approved']);
    expect(state.runs.r1).toMatchObject({ status: 'completed' });
  });

  it('do not open again when an older form arrives late', () => {
    const decided: Action = { type: 'decided', approvalId: 'write_file', approval: approval('write_file', { status: 'denied' }) };
    expect(statuses(play([...first, decided, events(asked('write_file'))]))).toEqual(['write_file: denied']);
  });

  it('are there after a reload, between what was said before and after', () => {
    const history = {
      messages: [stored('m1', 1, 'r1', 'user', 'Write it'), { ...stored('a1', 2, 'r1', 'assistant', 'Done.'), created_at: '2026-01-01T00:00:09Z' }, { ...stored('m2', 3, 'r2', 'user', 'Next'), created_at: '2026-01-01T00:00:10Z' }],
      approvals: [approval('write_file', { status: 'approved' }), approval('shell', { run_id: 'r2', created_at: '2026-01-01T00:00:11Z' })],
    };
    const state = play([{ type: 'history', history }]);
    expect(texts(state)).toEqual(['Write it', '? write_file', 'Done.', 'Next', '? shell']);
    expect(play([{ type: 'history', history }], state).items).toHaveLength(5);
  });

  it('of older messages wait for their page', () => {
    expect(texts(play([{ type: 'history', history: { messages: [stored('m9', 9, 'r9', 'user', 'Late')], approvals: [approval('write_file')] } }]))).toEqual(['Late']);
  });

  it('disappear when they are gone', () => {
    expect(statuses(play([...first, { type: 'decided', approvalId: 'write_file', approval: undefined }]))).toEqual([]);
  });

  it('are followed by the message that answers them', () => {
    const question = asked('ask_user', { kind: 'question' });
    const before = [sending('local:1', 'Plan it'), accepted('local:1', 'm1', 'r1'), events(started('r1'), question, parked)];
    const sent = play([...before, sending('local:2', 'Tuesday'), accepted('local:2', 'm2', 'r1')]);
    expect(texts(sent)).toEqual(['Plan it', '? ask_user', 'Tuesday']);
    const elsewhere = [...before, { type: 'history', history: { messages: [stored('m1', 1, 'r1', 'user', 'Plan it'), { ...stored('m2', 2, 'r1', 'user', 'Tuesday'), created_at: '2026-01-01T00:00:05Z' }] } } satisfies Action];
    expect(texts(play(elsewhere))).toEqual(['Plan it', '? ask_user', 'Tuesday']);
  });

  it('let their sub-agents wait, which continue under the same id', () => {
    const worker: AguiEvent = { type: 'SUBAGENT_STARTED', subagentRunId: 's1', name: 'Worker', metadata: origin('r1', 'worker') };
    const suspended: AguiEvent = { type: 'SUBAGENT_FINISHED', subagentRunId: 's1', outcome: { type: 'suspended' }, metadata: origin('r1', 'worker') };
    const waiting = play([...first.slice(0, 2), events(started('r1'), worker, asked('write_file'), suspended, parked)]);
    expect(waiting.runs.r1?.subAgents).toMatchObject([{ id: 's1', status: 'waiting' }]);
    const resumed = play([events(started('r1'), worker)], waiting);
    expect(resumed.runs.r1?.subAgents).toMatchObject([{ id: 's1', status: 'running' }]);
    expect(resumed.runs.r1?.finishedAt).toBeUndefined();
  });
});
