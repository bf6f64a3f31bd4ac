import { api, data, request } from '@/api/client';
import { Problem, sentence } from '@/api/problem';
import { authorization } from '@/api/session';
import type { Artifact } from '@/api/types';
import { newId } from '@/lib/ids';
import type { Action } from './reducer';
import type { Part } from './state';

export interface Outgoing { text: string; attachments?: Part[] | undefined; agent?: string | undefined; /** Of a message that failed: it is sent again under the same idempotency key. */ localId?: string | undefined }
interface Send extends Outgoing { threadId: string; dispatch: (action: Action) => void }

/** Shows the message at once, sends it, and marks it as sent or failed. True when the server has accepted it. */
export async function send({ threadId, text, attachments = [], agent, localId = `local:${newId()}`, dispatch }: Send): Promise<boolean> {
  dispatch({ type: 'sending', message: { kind: 'message', id: localId, key: localId, role: 'user', agent, text, attachments, at: Date.now(), status: 'sending' } });
  const content = attachments.length > 0 ? [...(text ? [{ type: 'text', text }] : []), ...attachments] : text;
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

/** A stored file as a part of a message. */
export function partOf({ artifact_id, name, media_type }: Artifact): Part {
  const uri = `/api/v1/artifacts/${artifact_id}`;
  return media_type.startsWith('image/') ? { type: 'image', media_type, uri } : { type: 'file', name, uri, media_type };
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

/** Stores a file in the thread, so that a message can name it. `XMLHttpRequest`, because `fetch` does not tell how far an upload is. */
export function upload(threadId: string, file: File, onProgress: (share: number) => void, signal: AbortSignal): Promise<Artifact> {
  const form = new FormData();
  form.set('thread_id', threadId);
  form.set('file', file);
  return new Promise((resolve, reject) => {
    const call = new XMLHttpRequest();
    call.open('POST', '/api/v1/artifacts');
    for (const [name, value] of Object.entries(authorization())) call.setRequestHeader(name, value);
    call.upload.onprogress = ({ loaded, total }) => onProgress(total > 0 ? loaded / total : 0);
    call.onerror = () => reject(new TypeError('upload failed'));
    call.onload = () => {
      if (call.status >= 200 && call.status < 300) return resolve(JSON.parse(call.responseText) as Artifact);
      reject(problemOf(call.status, call.responseText));
    };
    signal.addEventListener('abort', () => call.abort(), { once: true });
    call.send(form);
  });
}

function problemOf(status: number, text: string): Problem {
  try {
    return Problem.from(status, JSON.parse(text) as Record<string, unknown>);
  } catch {
    return new Problem(status, 'unknown', `the server answered ${status}`);
  }
}
