import { describe, expect, it } from 'vitest';
import type { AguiEvent, HandoffValue } from '@/api/events';
import { reduce, type Action } from './reducer';
import { accepted, events, finished, origin, play, said, sending, started, stored, texts } from './reducer.testing';
import type { MessageItem, ThreadState } from './state';

const handoff = (run: string, phase: HandoffValue['phase'], message = ''): AguiEvent =>
  ({ type: 'CUSTOM', name: 'baton.handoff', timestamp: 3, metadata: origin(run), value: { handoff_id: 'h', phase, from: 'assistant', to: 'creator', display_name: 'Creator', reason: '', message } });
const message = (state: ThreadState, id: string) => state.items.find((item) => item.id === id) as MessageItem;

describe('files of an answer', () => {
  const parts = [{ type: 'image', uri: '/api/v1/artifacts/a', media_type: 'image/png', name: 'chart.png' } as const];
  const files: AguiEvent = { type: 'ACTIVITY_SNAPSHOT', messageId: 'a1/baton.files', activityType: 'baton.files', metadata: origin('r1'), content: { message_id: 'a1', parts } };

  it('belong to the message that was said', () => {
    const state = play([events(started('r1'), ...said('r1', 'a1', 'A chart.'), files, finished('r1'))]);
    expect(message(state, 'a1')).toMatchObject({ text: 'A chart.', attachments: parts });
  });

  it('are shown without a text', () => {
    expect(message(play([events(started('r1'), files)]), 'a1')).toMatchObject({ role: 'assistant', runId: 'r1', attachments: parts });
  });
});

describe('messages', () => {
  it('confirms a sent message under the same key', () => {
    const state = play([sending('local:1', 'Hi'), accepted('local:1', 'm1', 'r1')]);
    expect(message(state, 'm1')).toMatchObject({ key: 'local:1', status: 'done', runId: 'r1' });
    expect(state.runs.r1?.status).toBe('queued');
  });

  it('puts the answer after its message, before those that wait', () => {
    const state = play([sending('local:1', 'One'), accepted('local:1', 'm1', 'r1'), sending('local:2', 'Two'), accepted('local:2', 'm2', 'r2'), events(started('r1'), ...said('r1', 'a1', 'First'))]);
    expect(texts(state)).toEqual(['One', 'First', 'Two']);
  });

  it('takes the stored form of a message that is still being sent as that message', () => {
    const state = play([sending('local:1', 'Hi'), events(started('r1')), { type: 'history', history: { messages: [stored('m1', 1, 'r1', 'user', 'Hi')] } }]);
    expect(texts(state)).toEqual(['Hi']);
    expect(message(state, 'm1').key).toBe('local:1');
    expect(texts(reduce(state, accepted('local:1', 'm1', 'r1')))).toEqual(['Hi']);
  });

  it('puts a question from another tab before the answer that has begun', () => {
    const state = play([events(started('r1'), ...said('r1', 'a1', 'Answer')), { type: 'history', history: { messages: [stored('m1', 1, 'r1', 'user', 'Question')] } }]);
    expect(texts(state)).toEqual(['Question', 'Answer']);
  });

  it('puts a question from another tab after the answers before it', () => {
    const first = play([sending('local:1', 'One'), accepted('local:1', 'm1', 'r1'), events(started('r1'), ...said('r1', 'a1', 'First'), finished('r1'))]);
    const newest: Action = { type: 'history', history: { messages: [stored('m1', 1, 'r1', 'user', 'One'), stored('m2', 3, 'r2', 'user', 'Two')] } };
    const state = play([events(started('r2')), newest, events(...said('r2', 'a2', 'Second'))], first);
    expect(texts(state)).toEqual(['One', 'First', 'Two', 'Second']);
    const sent = play([sending('local:3', 'Three'), events(started('r2')), newest], first);
    expect(texts(sent)).toEqual(['One', 'First', 'Two', 'Three']);
  });

  it('marks a refused message, sends it again in place, and forgets it', () => {
    const failed = play([sending('local:1', 'Hi'), { type: 'refused', localId: 'local:1', problem: 'No.' }]);
    expect(message(failed, 'local:1')).toMatchObject({ status: 'failed', problem: 'No.' });
    const again = reduce(failed, sending('local:1', 'Hi'));
    expect(again.items).toHaveLength(1);
    expect(message(again, 'local:1').status).toBe('sending');
    expect(reduce(again, { type: 'discarded', id: 'local:1' }).items).toEqual([]);
  });

  it('drops a text that was cut and comes again', () => {
    const state = play([events(started('r1'), ...said('r1', 'a1', 'Cut'), { type: 'CUSTOM', name: 'baton.turn_restarted', value: { message_id: 'a1' }, metadata: origin('r1') }, ...said('r1', 'a2', 'Whole'))]);
    expect(texts(state)).toEqual(['Whole']);
  });

  it('reads a text again from its start after a reconnect', () => {
    const [open, content] = said('r1', 'a1', 'Hello');
    const state = play([events(started('r1'), open!, content!), events(started('r1'), open!, content!)]);
    expect(texts(state)).toEqual(['Hello']);
  });

  it('keeps an unchanged message as the same object', () => {
    const page: Action = { type: 'history', history: { messages: [stored('m1', 1, 'r1', 'user', 'Hi')] } };
    const state = play([page]);
    expect(reduce(state, page).items[0]).toBe(state.items[0]);
  });
});

describe('runs', () => {
  it('names who answers once the run begins', () => {
    const state = play([sending('local:1', 'Hi'), accepted('local:1', 'm1', 'r1'), events(started('r1', 'assistant'))]);
    expect(state.runs.r1).toMatchObject({ agent: 'assistant', status: 'running' });
    expect(state.activeRun).toBe('r1');
  });

  it('marks a run that is taken out of the queue, and continues with the active one', () => {
    const state = play([sending('local:1', 'One'), accepted('local:1', 'm1', 'r1'), events(started('r1')), sending('local:2', 'Two'), accepted('local:2', 'm2', 'r2'), { type: 'removed', runId: 'r2' }]);
    expect(state.runs.r2).toMatchObject({ status: 'cancelled', isRemoved: true });
    const later = reduce(state, events(started('r2'), { type: 'RUN_FINISHED', threadId: 't', runId: 'r2', outcome: { type: 'cancelled' }, metadata: origin('r2') }));
    expect(later.activeRun).toBe('r1');
    expect(later.runs.r2?.isRemoved).toBe(true);
  });

  it('ends open texts and sub-agents with the run', () => {
    const [open] = said('r1', 'a1', '');
    const helper: AguiEvent = { type: 'SUBAGENT_STARTED', subagentRunId: 's', name: 'Research', timestamp: 2, metadata: origin('r1', 'research') };
    const state = play([events(started('r1'), helper, open!, finished('r1'))]);
    expect(message(state, 'a1').status).toBe('done');
    expect(state.runs.r1?.subAgents).toMatchObject([{ agent: 'research', status: 'done' }]);
    expect(state.activeRun).toBeUndefined();
  });
});

describe('budgets', () => {
  it('keeps the warning with its run', () => {
    const warning: AguiEvent = { type: 'CUSTOM', name: 'baton.budget', timestamp: 2, metadata: origin('r1'), value: { scope: 'tenant', period: 'day', unit: 'cost', percent: 82, message: '82 % of the budget of the tenant for this day is used (cost)' } };
    const state = play([events(started('r1'), warning)]);
    expect(state.runs.r1?.budget).toBe('82 % of the budget of the tenant for this day is used (cost)');
  });
});

describe('handoffs', () => {
  const dividers = (state: ThreadState) => state.items.flatMap((item) => (item.kind === 'divider' ? [`${item.edge}: ${item.text}`] : []));

  it('leaves one divider at each edge and clears the header at the end', () => {
    const active = play([events(started('r1'), handoff('r1', 'connecting', 'Connecting…'), handoff('r1', 'active'))]);
    expect(active.handoff).toMatchObject({ phase: 'active', to: 'creator' });
    const ended = reduce(active, events(started('r2'), handoff('r2', 'returning', 'Returning…'), handoff('r2', 'completed', 'Done')));
    expect(dividers(ended)).toEqual(['start: Connecting…', 'end: Done']);
    expect(ended.handoff).toBeUndefined();
  });

  // K7: the sentence of the handoff stays, and the mode of the specialist follows it.
  it('k7 shows the mode of the specialist after the sentence of the handoff', () => {
    const state = play([events(started('r1'), handoff('r1', 'connecting', 'Connecting…'), handoff('r1', 'active', '[Skill Creation Mode]'))]);
    expect(dividers(state)).toEqual(['start: Connecting…']);
    expect(state.items.find((item) => item.kind === 'divider')).toMatchObject({ text: 'Connecting…', mode: '[Skill Creation Mode]' });
  });

  it('adds a new divider when a handoff is taken up again', () => {
    const state = play([events(handoff('r1', 'connecting', 'One'), handoff('r2', 'cancelled', 'Left'), handoff('r3', 'active', 'Again'))]);
    expect(dividers(state)).toEqual(['start: One', 'end: Left', 'start: Again']);
  });

  it('does not repeat a divider of the history', () => {
    const notice = { handoff_id: 'h', from: 'assistant', to: 'creator', display_name: 'Creator', state: 'pending' as const, reason: '', started_at: '2026-01-01T00:00:01Z', message: 'Connecting…', mode: '[Creation Mode]' };
    const state = play([{ type: 'history', history: { messages: [stored('m1', 1, 'r1', 'user', 'Hi')], handoffs: [notice] } }, events(handoff('r1', 'active'))]);
    expect(dividers(state)).toEqual(['start: Connecting…']);
  });
});
