import { ArrowUpRight, Check, LoaderCircle, X } from 'lucide-react';
import { Link } from 'wouter';
import { useAgents } from '@/api/useAgents';
import { AgentBadge, ErrorNote, Notice } from '@/design';
import { compact } from '@/lib/format';
import { Markdown } from '@/markdown/Markdown';
import type { Trial } from './trial';
import styles from './Try.module.css';

const HELPER = { running: { icon: LoaderCircle, word: 'working' }, done: { icon: Check, word: 'done' }, failed: { icon: X, word: 'failed' } };

/** The question, who helped, and the answer as it arrives. */
export function TrialView({ trial, agent }: { trial: Trial; agent: string }) {
  const { face } = useAgents();
  const text = trial.answers.map((answer) => answer.text).filter(Boolean);
  const speaker = trial.speaker ?? agent;
  return (
    <article className={styles.trial} aria-busy={trial.status === 'running'}>
      <p className={styles.question} dir="auto">{trial.question}</p>
      <header className={styles.answerHeader}><AgentBadge {...face(speaker)} strong /><Status trial={trial} /></header>
      {trial.helpers.length > 0 && (
        <ul className={styles.helpers}>
          {trial.helpers.map(({ id, name, status }) => {
            const { icon: Icon, word } = HELPER[status];
            return <li key={id} data-status={status}><Icon size={13} aria-hidden />{name} <span className="faint">{word}</span></li>;
          })}
        </ul>
      )}
      {text.map((part, at) => <Markdown key={at} text={part} isStreaming={trial.status === 'running' && at === text.length - 1} />)}
      {trial.status === 'failed' && <ErrorNote title="The run failed.">{trial.error}</ErrorNote>}
      {trial.status === 'waiting' && <Notice>The agent waits for a decision. Open the conversation to answer.</Notice>}
      <footer className={styles.footer}>
        <Link href={`/threads/${trial.threadId}`}>Open as conversation<ArrowUpRight size={14} aria-hidden /></Link>
        {trial.runId && <Link href={`/runs/${trial.runId}`}>Run details</Link>}
        {trial.runId && <Link href={`/graph?run=${trial.runId}`}>Path in the graph</Link>}
        {trial.usage && <span className={styles.usage}>{compact(trial.usage.input_tokens)} tokens in, {compact(trial.usage.output_tokens)} out</span>}
      </footer>
    </article>
  );
}

function Status({ trial }: { trial: Trial }) {
  const word = { running: trial.activity || 'Working…', done: '', waiting: 'Waiting', cancelled: 'Stopped', failed: 'Failed' }[trial.status];
  return <span className={styles.status} role="status">{word}</span>;
}
