import { Ban, Check, CirclePause, LoaderCircle, X } from 'lucide-react';
import { useState } from 'react';
import { useAgents } from '@/api/useAgents';
import { AgentBadge, Elapsed } from '@/design';
import { CodeBlock } from '@/markdown/CodeBlock';
import { Markdown } from '@/markdown/Markdown';
import type { ToolCall } from '@/thread/state';
import type { AgentRow } from './agentRows';
import styles from './SubAgents.module.css';

const STATES = {
  running: { icon: LoaderCircle, word: 'Working' },
  waiting: { icon: CirclePause, word: 'Waiting' },
  done: { icon: Check, word: 'Done' },
  failed: { icon: X, word: 'Failed' },
  cancelled: { icon: Ban, word: 'Stopped' },
};

/** One agent: who, for what, how far, how long. Opens where more is known. */
export function SubAgentRow({ row }: { row: AgentRow }) {
  const [isOpen, setIsOpen] = useState(false);
  const { face } = useAgents();
  const known = face(row.agent);
  const { icon: Icon, word } = STATES[row.status];
  const hasMore = Boolean(row.text || row.tools.length > 0 || row.error);
  const line = (
    <>
      <AgentBadge {...known} name={row.name ?? known.name} />
      <span className={styles.task} title={row.task} dir="auto">{row.task}</span>
      <span className={styles.state} data-status={row.status}><Icon size={14} aria-hidden className={row.status === 'running' ? styles.spin : undefined} />{word}</span>
      <span className={styles.duration}><Elapsed since={row.startedAt} until={row.finishedAt} /></span>
    </>
  );
  return (
    <div className={styles.row} style={{ marginInlineStart: row.depth * 20 }}>
      {hasMore ? <button type="button" className={styles.line} aria-expanded={isOpen} onClick={() => setIsOpen(!isOpen)}>{line}</button> : <div className={styles.line}>{line}</div>}
      {row.error && <p className={styles.error}>{row.error}</p>}
      {isOpen && (
        <div className={styles.details}>
          {row.tools.map((call) => <Tool key={call.id} call={call} />)}
          {row.text && <Markdown text={row.text} />}
        </div>
      )}
    </div>
  );
}

function Tool({ call }: { call: ToolCall }) {
  return (
    <details className={styles.tool}>
      <summary>Used <code>{call.name}</code>{call.result === undefined && ' …'}</summary>
      {call.arguments && <CodeBlock text={call.arguments} language="arguments" />}
      {call.result !== undefined && <CodeBlock text={call.result} language="result" />}
    </details>
  );
}
