import { Ban, RotateCw } from 'lucide-react';
import { memo } from 'react';
import { sentence } from '@/api/problem';
import { Button, ErrorNote } from '@/design';
import { runErrorText } from '@/lib/runError';
import type { MessageItem, RunState } from '@/thread/state';
import { useChat } from './context';
import styles from './RunNote.module.css';
import { RunProgress } from './RunProgress';
import { RunWaiting } from './RunWaiting';

const REASONS = { failed: 'This could not be answered.', interrupted: 'The work on this answer was interrupted.' };

interface Props { run: RunState; agent: string; question: MessageItem | undefined; open: number }

/** What a run without a finished answer is doing, waits for, or failed with. */
export const RunNote = memo(function RunNote({ run, agent, question, open }: Props) {
  const { mayWrite, send } = useChat();
  const again = question && mayWrite && (
    <Button size="small" icon={RotateCw} onClick={() => void send({ text: question.text, attachments: question.attachments, agent: question.agent })}>Retry</Button>
  );
  switch (run.status) {
    case 'queued':
    case 'running': return <RunProgress run={run} agent={agent} />;
    case 'waiting': return <RunWaiting run={run} open={open} />;
    case 'failed':
    case 'interrupted': return <div className={styles.note}><ErrorNote action={again}><Reason run={run} status={run.status} /></ErrorNote></div>;
    case 'cancelled': return <div className={styles.stopped}><Ban size={14} aria-hidden /><span>Stopped</span>{again}</div>;
    default: return null;
  }
});

function Reason({ run: { error }, status }: { run: RunState; status: keyof typeof REASONS }) {
  const message = sentence(new Error(error?.message ?? REASONS[status]));
  const text = error && runErrorText(error.code);
  if (!text) return message;
  return <>{text}<details className={styles.cause}><summary>Cause</summary><code>{message}</code></details></>;
}
