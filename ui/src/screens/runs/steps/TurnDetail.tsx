import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { RunDetail, Step, Steps } from '@/api/types';
import { Button, Skeleton } from '@/design';
import { LoadError } from '@/shell/LoadError';
import { runQueries } from '../queries';
import { Block } from './Block';
import { conversationBefore, type ConversationEntry } from './conversation';
import { replyOf, textOf, type ToolRequest } from './decode';
import styles from './StepDetail.module.css';

/** A model turn: what it read, and what it said. */
export function TurnDetail({ run, step, steps }: { run: RunDetail; step: Step; steps: Steps }) {
  const { text, reasoning, calls } = replyOf(step.output);
  const isRoot = step.session_id === run.sessions[0]?.session_id;
  const task = useTask(run, isRoot);
  const said = conversationBefore(step, steps.steps, steps.calls, task);
  return (
    <>
      <SystemPrompt agent={step.agent} threadId={run.thread_id} />
      <section className={styles.section} aria-label="Conversation">
        <h3>Conversation</h3>
        {isRoot && <p className={styles.hint}>Earlier messages of the conversation are sent too and not repeated here.</p>}
        {said.map((one, at) => <EntryBlock key={`${one.path}${at}`} said={one} />)}
        {said.length === 0 && <p className="faint">Nothing was said before this turn.</p>}
      </section>
      <section className={styles.section} aria-label="Reply">
        <h3>Reply</h3>
        {reasoning && <Block title="Reasoning" text={reasoning} />}
        {(text || calls.length === 0) && <Block title="Text" text={text} empty={step.state === 'started' ? 'The model has not answered yet.' : 'The reply is empty.'} />}
        <Requests calls={calls} />
      </section>
    </>
  );
}

function EntryBlock({ said }: { said: ConversationEntry }) {
  const titles = { task: 'Task', agent: 'Agent', tool: `Result of ${said.name}` };
  return (
    <>
      {(said.text || !said.calls?.length) && <Block title={titles[said.role]} text={said.text} isCode={said.role === 'tool'} isFailed={said.failed ?? false} empty="empty" />}
      <Requests calls={said.calls ?? []} />
    </>
  );
}

function Requests({ calls }: { calls: ToolRequest[] }) {
  return calls.map((call, at) => <Block key={at} title={<>Calls <code>{call.name}</code></>} text={call.arguments} isCode />);
}

/** Prompts are not stored with the run: this is what the agent's file gives now. */
function SystemPrompt({ agent, threadId }: { agent: string; threadId: string }) {
  const [isOpen, setOpen] = useState(false);
  const prompt = useQuery({ ...runQueries.prompt(agent, threadId), enabled: isOpen });
  return (
    <section className={styles.section} aria-label="System prompt">
      <h3>System prompt (as rendered now)</h3>
      <p className={styles.hint}>The prompt is not stored with the run. If the agent's file changed since, this one differs.</p>
      {!isOpen && <div><Button size="small" onClick={() => setOpen(true)}>Show prompt</Button></div>}
      {isOpen && prompt.isPending && <Skeleton rows={4} />}
      {prompt.isError && <LoadError what="the prompt" error={prompt.error} onRetry={() => void prompt.refetch()} />}
      {prompt.data && <Block title={`Tools: ${prompt.data.tools.map((tool) => tool.name).join(', ') || 'none'}`} text={prompt.data.system} />}
    </section>
  );
}

/** The person's message that the run is about, for the session that has no task of its own. */
function useTask(run: RunDetail, isNeeded: boolean): string {
  const { data } = useQuery({ ...runQueries.messages(run.thread_id), enabled: isNeeded });
  const message = data?.data.find((other) => other.run_id === run.run_id && other.role === 'user');
  return textOf(message?.parts);
}
