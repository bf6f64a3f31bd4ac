import { createContext, useContext } from 'react';
import type { Approval } from '@/approvals/record';
import type { Outgoing } from '@/thread/actions';

/** What every part of a conversation can do. The object stays the same while the conversation goes on, so rows are not rendered again. */
export interface Chat {
  threadId: string;
  mayWrite: boolean;
  mayTrace: boolean;
  send: (message: Outgoing) => Promise<boolean>;
  /** Puts text into the composer. */
  fill: (text: string, agent?: string) => void;
  discard: (id: string) => void;
  rate: (messageId: string, rating: 1 | -1, before: number | undefined) => Promise<void>;
  cancel: (runId: string) => Promise<void>;
  /** Takes a message out of the queue. */
  remove: (runId: string) => Promise<void>;
  /** What became of a request; undefined if it is gone. */
  decided: (approvalId: string, approval: Approval | undefined) => void;
  lastEventAt: () => number;
}

export const ChatContext = createContext<Chat | undefined>(undefined);

export function useChat(): Chat {
  const chat = useContext(ChatContext);
  if (!chat) throw new Error('useChat is used outside of a conversation');
  return chat;
}
