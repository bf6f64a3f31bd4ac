import { lazy, memo, Suspense } from 'react';
import { isOpen, isWorkflowQuestion } from '@/approvals/record';
import { Skeleton } from '@/design';
import type { RequestItem } from '@/thread/state';
import { useChat } from './context';

/** Most conversations have no requests, so their cards and forms are not part of the first load. */
const Request = lazy(async () => ({ default: (await import('@/approvals/Request')).Request }));

/**
 * A request where its run stopped for it. What a workflow asks is a message already, as is the answer: only its choices are added, as
 * long as they can be chosen.
 */
export const ChatRequest = memo(function ChatRequest({ item }: { item: RequestItem }) {
  const { decided } = useChat();
  if (isWorkflowQuestion(item.approval) && !(isOpen(item.approval) && item.approval.choices?.length)) return null;
  return (
    <Suspense fallback={<Skeleton rows={1} height={40} />}>
      <Request approval={item.approval} onChange={(now) => decided(item.id, now)} />
    </Suspense>
  );
});
