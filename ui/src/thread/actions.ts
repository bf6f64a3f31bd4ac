import { api, data, request } from '@/api/client';
import { sentence } from '@/api/problem';
import type { Artifact } from '@/api/types';
import { newThreadId } from '@/lib/ids';
import type { Action } from './reducer';
import type { Part } from './state';

interface Send { threadId: string; text: string; files?: Artifact[] | undefined; agent?: string | undefined; dispatch: (action: Action) => void }

/** Shows the message at once, sends it, and marks it as sent or failed. True when the server has accepted it. */
export async function send({ threadId, text, files = [], agent, dispatch }: Send): Promise<boolean> {
  const localId = `local:${newThreadId()}`;
  const attachments: Part[] = files.map(({ artifact_id, name, media_type }) => ({ type: 'file', name, uri: `/api/v1/artifacts/${artifact_id}`, media_type }));
  dispatch({ type: 'sending', message: { kind: 'message', id: localId, role: 'user', text, attachments, at: Date.now(), status: 'sending' } });
  const content = attachments.length > 0 ? [{ type: 'text', text }, ...attachments] : text;
  try {
    const response = await request(`/api/v1/threads/${threadId}/messages`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Accept: 'application/json', Prefer: 'respond-async', 'Idempotency-Key': localId.slice('local:'.length) },
      body: JSON.stringify({ content, ...(agent ? { agent } : {}) }),
    });
    const { run_id: runId, message_id: messageId } = (await response.json()) as { run_id: string; message_id: string };
    dispatch({ type: 'accepted', localId, messageId, runId, agent: agent ?? '' });
    return true;
  } catch (error) {
    dispatch({ type: 'refused', localId, problem: sentence(error) });
    return false;
  }
}

/** `stop` lets the agents finish with what they have; `abort` ends them at once. */
export function cancelRun(runId: string, mode: 'stop' | 'abort' = 'abort') {
  return data(api.POST('/api/v1/runs/{run_id}/cancel', { params: { path: { run_id: runId } }, body: { mode } }));
}

export function exitHandoff(threadId: string) {
  return data(api.DELETE('/api/v1/threads/{thread_id}/handoff', { params: { path: { thread_id: threadId } } }));
}

export function resumeHandoff(threadId: string, handoffId: string) {
  return data(api.POST('/api/v1/threads/{thread_id}/handoff/resume', { params: { path: { thread_id: threadId } }, body: { handoff_id: handoffId } }));
}

export function discardHandoff(threadId: string, handoffId: string) {
  return api.DELETE('/api/v1/threads/{thread_id}/handoffs/{handoff_id}', { params: { path: { thread_id: threadId, handoff_id: handoffId } } });
}

export function rate(messageId: string, rating: 1 | -1) {
  return api.POST('/api/v1/messages/{message_id}/feedback', { params: { path: { message_id: messageId } }, body: { rating } });
}

export function renameThread(threadId: string, title: string) {
  return data(api.PATCH('/api/v1/threads/{thread_id}', { params: { path: { thread_id: threadId } }, body: { title } }));
}

export function deleteThread(threadId: string) {
  return api.DELETE('/api/v1/threads/{thread_id}', { params: { path: { thread_id: threadId } } });
}

/** Stores a file in the thread, so that a message can name it. */
export async function upload(threadId: string, file: File): Promise<Artifact> {
  const form = new FormData();
  form.set('thread_id', threadId);
  form.set('file', file);
  const response = await request('/api/v1/artifacts', { method: 'POST', body: form });
  return (await response.json()) as Artifact;
}
