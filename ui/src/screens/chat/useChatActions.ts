import { useQueryClient } from '@tanstack/react-query';
import { useMemo, useRef } from 'react';
import { useLocation } from 'wouter';
import { cancelRun } from '@/run/queries';
import { rate, send } from '@/thread/actions';
import type { ThreadHandle } from '@/thread/useThread';
import { useMay } from '@/api/useMay';
import type { Chat } from './context';

interface Options { threadId: string; isNew: boolean; handle: ThreadHandle; fill: Chat['fill']; onSent: () => void }

/** The actions of a conversation as one object that never changes. */
export function useChatActions({ threadId, isNew, handle, fill, onSent }: Options): Chat {
  const may = useMay();
  const queryClient = useQueryClient();
  const [location, navigate] = useLocation();
  const latest = useRef({ isNew, location, navigate, fill, onSent });
  latest.current = { isNew, location, navigate, fill, onSent };
  const { dispatch, begin, lastEventAt } = handle;
  const mayWrite = may('thread:write');
  const mayTrace = may('trace:read');
  return useMemo<Chat>(() => ({
    threadId,
    mayWrite,
    mayTrace,
    lastEventAt,
    fill: (text, agent) => latest.current.fill(text, agent),
    decided: (approvalId, approval) => dispatch({ type: 'decided', approvalId, approval }),
    discard: (id) => dispatch({ type: 'discarded', id }),
    async send(message) {
      latest.current.onSent();
      const isAccepted = await send({ ...message, threadId, dispatch });
      if (!isAccepted) return false;
      begin();
      const { isNew, location, navigate } = latest.current;
      if (isNew && location === '/') navigate(`/threads/${threadId}`, { replace: true });
      void queryClient.invalidateQueries({ queryKey: ['threads'] });
      return true;
    },
    async rate(messageId, rating, before) {
      dispatch({ type: 'rated', messageId, rating });
      try {
        await rate(messageId, rating);
      } catch (error) {
        dispatch({ type: 'rated', messageId, rating: before ?? 0 });
        throw error;
      }
    },
    async cancel(runId) {
      await cancelRun(runId, 'abort');
    },
    async remove(runId) {
      await cancelRun(runId, 'abort');
      // The stream says so only when its turn comes.
      dispatch({ type: 'removed', runId });
    },
  }), [threadId, mayWrite, mayTrace, lastEventAt, dispatch, begin, queryClient]);
}
