// Events and actions that the tests of the reducer play.
import type { AguiEvent, Origin } from '@/api/events';
import type { Message } from '@/api/types';
import { reduce, type Action } from './reducer';
import { emptyThread, type ThreadState } from './state';

export const origin = (run_id: string, agent = 'assistant'): { baton: Origin } => ({ baton: { thread_id: 't', run_id, agent, path: [], seq: 0 } });
export const events = (...list: AguiEvent[]): Action => ({ type: 'events', events: list });
export const play = (actions: Action[], from: ThreadState = emptyThread) => actions.reduce(reduce, from);
export const texts = (state: ThreadState) => state.items.map((item) => (item.kind === 'request' ? `? ${item.approval.tool}` : item.text));

export const started = (run: string, agent?: string): AguiEvent => ({ type: 'RUN_STARTED', threadId: 't', runId: run, timestamp: 1, metadata: origin(run, agent) });
export const finished = (run: string): AguiEvent => ({ type: 'RUN_FINISHED', threadId: 't', runId: run, timestamp: 9, metadata: origin(run) });
export const said = (run: string, id: string, text: string): AguiEvent[] => [
  { type: 'TEXT_MESSAGE_START', messageId: id, role: 'assistant', name: 'Assistant', timestamp: 2, metadata: origin(run) },
  { type: 'TEXT_MESSAGE_CONTENT', messageId: id, delta: text, metadata: origin(run) },
  { type: 'TEXT_MESSAGE_END', messageId: id, metadata: origin(run) },
];
export const sending = (id: string, text: string): Action => ({ type: 'sending', message: { kind: 'message', id, key: id, role: 'user', text, attachments: [], at: 1, status: 'sending' } });
export const accepted = (localId: string, messageId: string, runId: string): Action => ({ type: 'accepted', localId, messageId, runId, agent: '' });
export const stored = (id: string, number: number, run: string, role: 'user' | 'assistant', text: string): Message =>
  ({ message_id: id, number, run_id: run, role, visibility: 'user', parts: [{ type: 'text', text }], created_at: '2026-01-01T00:00:00Z' });
