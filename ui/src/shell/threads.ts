import { infiniteQueryOptions, keepPreviousData, useInfiniteQuery, useMutation, useQueryClient } from '@tanstack/react-query';
import { useMemo } from 'react';
import { api, data } from '@/api/client';
import type { Thread } from '@/api/types';

interface ThreadFilter { q: string; userId?: string | undefined }

const PAGE = 40;

/** The thread list. Others invalidate `['threads']` when a thread changes; beyond that it is read every 5 s while the tab is visible. */
function threadsQuery({ q, userId }: ThreadFilter) {
  return infiniteQueryOptions({
    queryKey: ['threads', q, userId ?? 'all'],
    queryFn: ({ pageParam }) => {
      const query = { limit: PAGE, ...(q && { q }), ...(userId && { user_id: userId }), ...(pageParam && { cursor: pageParam }) };
      return data(api.GET('/api/v1/threads', { params: { query } }));
    },
    initialPageParam: '',
    getNextPageParam: (page) => page.next_cursor ?? undefined,
    placeholderData: keepPreviousData,
    refetchInterval: 5_000,
  });
}

export function useThreads(filter: ThreadFilter, enabled: boolean) {
  const query = useInfiniteQuery({ ...threadsQuery(filter), enabled });
  const threads = useMemo(() => unique(query.data?.pages.flatMap((page) => page.data) ?? []), [query.data]);
  return { ...query, threads };
}

/** A thread that changes between two pages can be on both. */
function unique(threads: Thread[]): Thread[] {
  return [...new Map(threads.map((thread) => [thread.thread_id, thread])).values()];
}

export function useRenameThread(threadId: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (title: string) => data(api.PATCH('/api/v1/threads/{thread_id}', { params: { path: { thread_id: threadId } }, body: { title } })),
    onSuccess: ({ title }) => {
      // For the header of the conversation, which has read its thread before.
      client.setQueryData(['renamed', threadId], title);
      return client.invalidateQueries({ queryKey: ['threads'] });
    },
  });
}

export function useDeleteThread(threadId: string, onDeleted: () => void) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: () => api.DELETE('/api/v1/threads/{thread_id}', { params: { path: { thread_id: threadId } } }),
    onSuccess: () => {
      // Before the list is read anew: the row that asked is gone then.
      onDeleted();
      return client.invalidateQueries({ queryKey: ['threads'] });
    },
  });
}
