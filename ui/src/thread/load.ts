import { listApprovals } from '@/api/approvals';
import { api, data } from '@/api/client';
import type { ListedApproval } from '@/approvals/record';
import { Problem } from '@/api/problem';
import type { Run, ThreadContext } from '@/api/types';
import type { History } from './history';

const PAGE = 50;

interface LoadedThread {
  thread: ThreadContext;
  history: History;
  /** Where the list of runs goes on. */
  runsCursor?: string | undefined;
}

/** A thread with its newest messages; `undefined` if there is none of that id, or it belongs to someone else. */
export async function loadThread(threadId: string): Promise<LoadedThread | undefined> {
  const path = { thread_id: threadId };
  try {
    // The thread first: events after its `last_seq` are followed, so whatever the other answers lack comes by the stream.
    const thread = await data(api.GET('/api/v1/threads/{thread_id}', { params: { path } }));
    const [messages, handoffs, runs, approvals] = await Promise.all([
      data(api.GET('/api/v1/threads/{thread_id}/messages', { params: { path, query: { limit: PAGE } } })),
      data(api.GET('/api/v1/threads/{thread_id}/handoffs', { params: { path } })),
      loadRuns(threadId),
      loadApprovals(threadId),
    ]);
    const history = { thread, approvals, messages: messages.data, hasOlder: Boolean(messages.next_cursor), handoffs: handoffs.data, runs: runs.data };
    return { thread, history, runsCursor: runs.next_cursor ?? undefined };
  } catch (error) {
    if (error instanceof Problem && (error.code === 'thread_not_found' || error.code === 'invalid_thread_id')) return undefined;
    throw error;
  }
}

/** The newest approvals and questions, open and settled. */
async function loadApprovals(threadId: string): Promise<ListedApproval[]> {
  return (await listApprovals({ thread_id: threadId, order: 'desc' })).data.toReversed();
}

/** Runs carry cost and sources. Without the permission to list them the conversation is shown without these. */
async function loadRuns(threadId: string, cursor?: string): Promise<{ data: Run[]; next_cursor?: string | null }> {
  try {
    return await data(api.GET('/api/v1/runs', { params: { query: { thread_id: threadId, limit: PAGE, ...(cursor ? { cursor } : {}) } } }));
  } catch (error) {
    if (error instanceof Problem && error.status === 403) return { data: [] };
    throw error;
  }
}

/** The page of messages before a number, with the next page of runs. */
export async function loadOlder(threadId: string, before: number, runsCursor: string | undefined): Promise<{ history: History; runsCursor?: string | undefined }> {
  const path = { thread_id: threadId };
  const [messages, handoffs, runs] = await Promise.all([
    data(api.GET('/api/v1/threads/{thread_id}/messages', { params: { path, query: { limit: PAGE, before } } })),
    data(api.GET('/api/v1/threads/{thread_id}/handoffs', { params: { path } })),
    runsCursor ? loadRuns(threadId, runsCursor) : { data: [] },
  ]);
  const history = { messages: messages.data, hasOlder: Boolean(messages.next_cursor), handoffs: handoffs.data, runs: runs.data };
  return { history, runsCursor: ('next_cursor' in runs && runs.next_cursor) || undefined };
}

/** The newest messages of people, for those that came by another way than this tab. What agents say comes by the stream. */
export async function loadNewest(threadId: string): Promise<History> {
  const path = { thread_id: threadId };
  const messages = await data(api.GET('/api/v1/threads/{thread_id}/messages', { params: { path, query: { limit: 10 } } }));
  return { messages: messages.data.filter(({ role }) => role === 'user') };
}
