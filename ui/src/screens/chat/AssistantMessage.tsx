import { memo } from 'react';
import { useAgents } from '@/api/useAgents';
import { AgentBadge, hueOf, Time } from '@/design';
import { Markdown } from '@/markdown/Markdown';
import type { MessageItem, RunState } from '@/thread/state';
import { Attachments } from './Attachments';
import styles from './Message.module.css';
import { MessageFooter } from './MessageFooter';
import { Sources } from './Sources';

interface Props { item: MessageItem; run: RunState | undefined; question: MessageItem | undefined; closesRun: boolean }

/** What an agent said: who, when, the text, and below it what it cost and what can be done with it. */
export const AssistantMessage = memo(function AssistantMessage({ item, run, question, closesRun }: Props) {
  const { face } = useAgents();
  const known = face(item.agent ?? '');
  const name = item.name ?? known.name ?? 'Agent';
  const isStreaming = item.status === 'streaming';
  return (
    <article className={styles.assistant} aria-label={name} aria-busy={isStreaming} data-hue={hueOf(known.color, item.agent ?? name)}>
      <header className={styles.who}>
        <AgentBadge name={name} color={known.color} icon={known.icon} id={item.agent} strong />
        <span className={styles.time}><Time at={item.at} /></span>
      </header>
      <Markdown text={item.text} isStreaming={isStreaming} />
      <Attachments parts={item.attachments} />
      {closesRun && run && run.sources.length > 0 && <Sources sources={run.sources} runId={run.id} />}
      {!isStreaming && <MessageFooter item={item} run={closesRun ? run : undefined} question={closesRun ? question : undefined} />}
    </article>
  );
});
