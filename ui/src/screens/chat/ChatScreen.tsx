import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { queries } from '@/api/queries';
import { newId } from '@/lib/ids';
import { Conversation } from './Conversation';
import { LoadingScreen } from './ThreadStates';

/**
 * A conversation: a new one without `threadId`. The id of a new one is made here, so its address can change to `/threads/{id}` after the
 * first message while the same component stays.
 */
export function ChatScreen({ threadId }: { threadId?: string }) {
  const [fresh, setFresh] = useState(newId);
  const [shown, setShown] = useState(threadId);
  if (shown !== threadId) {
    setShown(threadId);
    // Leaving for another thread: what was new before is stored now, and the next new one gets its own id.
    if (threadId !== fresh) setFresh(newId());
  }
  const id = threadId ?? fresh;
  // Until the permissions are known it is unknown what can be shown; the frame says so if they cannot be read.
  const me = useQuery(queries.me());
  if (!me.data) return <LoadingScreen isNew={threadId === undefined} />;
  return <Conversation key={id} threadId={id} isNew={threadId === undefined} />;
}
