import { Ban, RotateCw } from 'lucide-react';
import { memo } from 'react';
import { Button, ErrorNote } from '@/design';
import type { MessageItem, RunState } from '@/thread/state';
import { Approvals } from './Approvals';
import { useChat } from './context';
import styles from './RunNote.module.css';
import { RunProgress } from './RunProgress';

/** What a run without a finished answer is doing, waits for, or failed with. */
export const RunNote = memo(function RunNote({ run, agent, question }: { run: RunState; agent: string; question: MessageItem | undefined }) {
  const { mayWrite, send } = useChat();
  const again = question && mayWrite && (
    <Button size="small" icon={RotateCw} onClick={() => void send({ text: question.text, attachments: question.attachments, agent: question.agent })}>Retry</Button>
  );
  switch (run.status) {
    case 'queued':
    case 'running': return <RunProgress run={run} agent={agent} />;
    case 'waiting': return <Approvals run={run} />;
    case 'failed': return <ErrorNote action={again}>{run.error?.message ?? 'This could not be answered.'}</ErrorNote>;
    case 'interrupted': return <ErrorNote action={again}>{run.error?.message ?? 'The work on this answer was interrupted.'}</ErrorNote>;
    case 'cancelled': return <div className={styles.stopped}><Ban size={14} aria-hidden /><span>Stopped</span>{again}</div>;
    default: return null;
  }
});
