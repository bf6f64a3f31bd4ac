import { api, data } from '@/api/client';
import { Problem } from '@/api/problem';
import type { ThreadContext } from '@/api/types';
import type { History } from './history';

const PAGE = 50;

/** A thread with its newest messages; `undefined` if it has none yet, because a thread begins with its first message. */
export async function loadThread(threadId: string): Promise<{ thread: ThreadContext; history: History } | undefined> {
  const path = { thread_id: threadId };
  try {
    // The thread first: events after its `last_seq` are followed, so whatever the other answers lack comes by the stream.
    const thread = await data(api.GET('/api/v1/threads/{thread_id}', { params: { path } }));
    const [messages, handoffs, runs] = await Promise.all([
      data(api.GET('/api/v1/threads/{thread_id}/messages', { params: { path, query: { limit: PAGE } } })),
      data(api.GET('/api/v1/threads/{thread_id}/handoffs', { params: { path } })),
      data(api.GET('/api/v1/runs', { params: { query: { thread_id: threadId, limit: PAGE } } })),
    ]);
    return { thread, history: { thread, messages: messages.data, hasOlder: Boolean(messages.next_cursor), handoffs: handoffs.data, runs: runs.data } };
  } catch (error) {
    if (error instanceof Problem && error.code === 'thread_not_found') return undefined;
    throw error;
  }
}

/** The page of messages before a number. */
export async function loadOlder(threadId: string, before: number): Promise<History> {
  const path = { thread_id: threadId };
  const [messages, handoffs] = await Promise.all([
    data(api.GET('/api/v1/threads/{thread_id}/messages', { params: { path, query: { limit: PAGE, before } } })),
    data(api.GET('/api/v1/threads/{thread_id}/handoffs', { params: { path } })),
  ]);
  return { messages: messages.data, hasOlder: Boolean(messages.next_cursor), handoffs: handoffs.data };
}

/** The newest messages, for those that came by another way than this tab. */
export async function loadNewest(threadId: string): Promise<History> {
  const path = { thread_id: threadId };
  const messages = await data(api.GET('/api/v1/threads/{thread_id}/messages', { params: { path, query: { limit: 10 } } }));
  return { messages: messages.data };
}
