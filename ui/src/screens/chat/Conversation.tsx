import { skipToken, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useAgents } from '@/api/useAgents';
import { useMay } from '@/api/useMay';
import { isOpen } from '@/approvals/record';
import { cx } from '@/design';
import type { Item } from '@/thread/state';
import { useThread } from '@/thread/useThread';
import { Announcer } from './Announcer';
import { Composer } from './Composer';
import composerStyles from './Composer.module.css';
import { BudgetNote } from './BudgetNote';
import { ReconnectingBanner } from './ReconnectingBanner';
import { ChatContext } from './context';
import styles from './Conversation.module.css';
import { FirstRun } from './FirstRun';
import { HandoffButtons } from './HandoffButtons';
import { Header } from './Header';
import { Inspector } from './Inspector';
import { LoadingThread, MissingThread, UnreadableThread } from './ThreadStates';
import { MessageList } from './MessageList';
import { ResumableHandoffs } from './ResumableHandoffs';
import { useChatActions } from './useChatActions';
import { useComposer } from './useComposer';
import { usePrefill } from './usePrefill';
import { useStickToBottom } from './useStickToBottom';
import { useInspector } from './useInspector';
import { useChatShortcuts } from './useChatShortcuts';
import { useInboxRefresh, useThreadListRefresh } from './useThreadListRefresh';

/** One conversation with all that belongs to it. */
export function Conversation({ threadId, isNew }: { threadId: string; isNew: boolean }) {
  const may = useMay();
  const { face } = useAgents();
  const handle = useThread(threadId, may('trace:read') ? 'trace' : 'person', isNew);
  const { state, thread, load } = handle;
  useThreadListRefresh(state);
  useInboxRefresh(state);
  const { data: renamed } = useQuery<string>({ queryKey: ['renamed', threadId], queryFn: skipToken });
  const isListed = load === 'ready' && (state.items.length > 0 || state.activeRun !== undefined);
  const scroll = useStickToBottom(!isListed);
  const chat = useChatActions({ threadId, isNew, handle, fill: (text, agent) => composer.fill(text, agent), onSent: scroll.toEnd });
  const composer = useComposer(threadId, isNew, chat.send);
  usePrefill(isNew, composer);
  const [isInspected, setIsInspected] = useInspector();
  const [problem, setProblem] = useState<string>();
  const stop = useChatShortcuts({ area: composer.area, activeRun: state.activeRun, cancel: chat.cancel, onProblem: setProblem });

  if (load === 'missing') return <MissingThread />;
  if (load === 'failed') return <UnreadableThread problem={handle.problem} onRetry={handle.reload} />;
  const agent = state.activeAgent?.id ?? thread?.current_active_agent;
  const title = renamed || thread?.title || firstWords(state.items) || (isNew ? 'New conversation' : load === 'loading' ? 'Loading…' : 'Untitled conversation');
  const recipient = state.handoff?.name ?? (agent === undefined ? undefined : face(agent).name);
  const asking = askingAgent(state.items);
  return (
    <ChatContext value={chat}>
      <div className={styles.screen}>
        <div className={styles.main}>
          <Header threadId={threadId} state={state} agent={agent} title={title} isInspected={isInspected} onInspect={() => setIsInspected(!isInspected)} />
          <ReconnectingBanner status={handle.connection} />
          <BudgetNote state={state} />
          <Announcer state={state} agent={agent} />
          {load === 'loading' ? <LoadingThread /> : (
            <MessageList handle={handle} scroll={scroll}>
              {!isListed && <FirstRun />}
              <HandoffButtons state={state} />
              {!state.handoff && thread && <ResumableHandoffs threadId={threadId} handoffs={thread.resumable_handoffs} />}
            </MessageList>
          )}
          {problem && <p role="alert" className={styles.problem}>{problem}</p>}
          {chat.mayWrite
            ? <Composer composer={composer} activeRun={state.activeRun} onStop={stop} placeholder={asking !== undefined ? `Answer ${face(asking).name}` : recipient ? `Message ${recipient}` : 'Write a message'} />
            : <p className={cx(composerStyles.readOnly)}>You can read this conversation, but your role cannot send messages.</p>}
        </div>
        {isInspected && <Inspector threadId={threadId} thread={thread} state={state} onClose={() => setIsInspected(false)} />}
      </div>
    </ChatContext>
  );
}

/** Who has asked the only open question: the next message answers it. */
function askingAgent(items: Item[]): string | undefined {
  const questions = items.flatMap((item) => (item.kind === 'request' && item.approval.kind === 'question' && isOpen(item.approval) ? [item.approval] : []));
  return questions.length === 1 ? questions[0]?.agent : undefined;
}

function firstWords(items: { kind: string }[]): string {
  const first = items.find((item) => item.kind === 'message');
  return first && 'text' in first ? String(first.text).slice(0, 80) : '';
}
