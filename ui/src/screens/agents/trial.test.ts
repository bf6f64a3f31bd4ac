import { expect, it } from 'vitest';
import type { AguiEvent } from '@/api/events';
import { applyEvent, newTrial } from './trial';

const play = (...events: AguiEvent[]) => events.reduce(applyEvent, newTrial('t', 'hello'));

it('collects the answer and leaves out work behind the scenes', () => {
  const trial = play(
    { type: 'RUN_STARTED', threadId: 't', runId: 'r' },
    { type: 'SUBAGENT_STARTED', subagentRunId: 's', name: 'Research' },
    { type: 'TEXT_MESSAGE_START', messageId: 'x', subagentRunId: 's' },
    { type: 'TEXT_MESSAGE_CONTENT', messageId: 'x', delta: 'inner', subagentRunId: 's' },
    { type: 'SUBAGENT_ERROR', subagentRunId: 's', message: 'late' },
    { type: 'TEXT_MESSAGE_START', messageId: 'm' },
    { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm', delta: 'Hel' },
    { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm', delta: 'lo' },
    { type: 'RUN_FINISHED', threadId: 't', runId: 'r', outcome: { type: 'success' } },
  );
  expect(trial).toMatchObject({ runId: 'r', status: 'done', answers: [{ text: 'Hello' }], helpers: [{ name: 'Research', status: 'failed' }] });
});

it('drops a text that was cut', () => {
  const trial = play({ type: 'TEXT_MESSAGE_START', messageId: 'm' }, { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm', delta: 'Hel' }, { type: 'CUSTOM', name: 'baton.turn_restarted', value: { message_id: 'm' } });
  expect(trial.answers).toEqual([]);
});

it('tells failures and waiting apart', () => {
  expect(play({ type: 'RUN_ERROR', message: 'no model' })).toMatchObject({ status: 'failed', error: 'no model' });
  expect(play({ type: 'RUN_FINISHED', threadId: 't', runId: 'r', outcome: { type: 'interrupt' } }).status).toBe('waiting');
});
