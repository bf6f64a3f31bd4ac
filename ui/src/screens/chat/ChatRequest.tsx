import { lazy, memo, Suspense } from 'react';
import { Skeleton } from '@/design';
import type { RequestItem } from '@/thread/state';
import { useChat } from './context';

/** Most conversations have no requests, so their cards and forms are not part of the first load. */
const Request = lazy(async () => ({ default: (await import('@/approvals/Request')).Request }));

/** A request where its run stopped for it. */
export const ChatRequest = memo(function ChatRequest({ item }: { item: RequestItem }) {
  const { decided } = useChat();
  return (
    <Suspense fallback={<Skeleton rows={1} height={40} />}>
      <Request approval={item.approval} onChange={(now) => decided(item.id, now)} />
    </Suspense>
  );
});
