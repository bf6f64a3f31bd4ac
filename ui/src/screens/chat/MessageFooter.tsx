import { useQuery } from '@tanstack/react-query';
import { Activity, RotateCw, ThumbsDown, ThumbsUp } from 'lucide-react';
import { useState } from 'react';
import { Link } from 'wouter';
import { sentence } from '@/api/problem';
import { queries } from '@/api/queries';
import { useAgents } from '@/api/useAgents';
import { CopyButton, IconButton } from '@/design';
import { compact, cost, duration, tokens } from '@/lib/format';
import type { MessageItem, RunState } from '@/thread/state';
import { useChat } from './context';
import styles from './Message.module.css';

/** Actions of an answer, and what it took. The line keeps its place while it is hidden. */
export function MessageFooter({ item, run, question }: { item: MessageItem; run: RunState | undefined; question: MessageItem | undefined }) {
  const { mayWrite, mayTrace, send } = useChat();
  const again = question && mayWrite ? () => void send({ text: question.text, attachments: question.attachments, agent: question.agent }) : undefined;
  return (
    <footer className={styles.footer} data-rated={item.rating || undefined}>
      <CopyButton text={item.text} label="Copy answer" />
      {mayWrite && item.number !== 0 && <Rating item={item} />}
      {again && <IconButton icon={RotateCw} label="Retry: ask the same again" size="small" onClick={again} />}
      {run && mayTrace && <Link href={`/runs/${run.id}`} className={styles.runLink} aria-label="Show the run" title="Show the run"><Activity size={14} aria-hidden /></Link>}
      {run && <Facts run={run} agent={item.agent} />}
    </footer>
  );
}

function Facts({ run, agent }: { run: RunState; agent: string | undefined }) {
  const { agents } = useAgents();
  const system = useQuery(queries.system());
  const model = agents.find((one) => one.id === agent)?.model[0] ?? system.data?.default_model;
  const facts = [
    run.finishedAt && duration(run.finishedAt - run.startedAt),
    run.usage && `${compact(tokens(run.usage))} tokens`,
    run.usage && (run.usage.cost_known || Number(run.usage.cost_usd) > 0 ? cost(run.usage) : 'cost unknown'),
    model,
  ].filter(Boolean);
  return <span className={styles.facts}>{facts.join(' · ')}</span>;
}

function Rating({ item }: { item: MessageItem }) {
  const { rate } = useChat();
  const [problem, setProblem] = useState<string>();
  const give = (rating: 1 | -1) => {
    setProblem(undefined);
    if (item.rating !== rating) rate(item.id, rating, item.rating).catch((error: unknown) => setProblem(sentence(error)));
  };
  return (
    <>
      <IconButton icon={ThumbsUp} label="Good answer" size="small" pressed={item.rating === 1} onClick={() => give(1)} />
      <IconButton icon={ThumbsDown} label="Bad answer" size="small" pressed={item.rating === -1} onClick={() => give(-1)} />
      {problem && <span role="alert" className={styles.problem}>{problem}</span>}
    </>
  );
}
