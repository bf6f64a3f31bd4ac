import { useMutation } from '@tanstack/react-query';
import { X } from 'lucide-react';
import { useState } from 'react';
import { sentence } from '@/api/problem';
import type { ResumableHandoff } from '@/api/types';
import { useAgents } from '@/api/useAgents';
import { AgentBadge, Button, ErrorNote, hueOf, IconButton, ProgressBar } from '@/design';
import { discardHandoff, resumeHandoff } from '@/thread/actions';
import styles from './Conversation.module.css';
import { useChat } from './context';

/** Work with a specialist that was left and can be taken up again. */
export function ResumableHandoffs({ threadId, handoffs }: { threadId: string; handoffs: ResumableHandoff[] }) {
  const { mayWrite } = useChat();
  const [done, setDone] = useState<string[]>([]);
  if (!mayWrite) return null;
  return handoffs
    .filter(({ handoff_id }) => !done.includes(handoff_id))
    .map((handoff) => <DraftCard key={handoff.handoff_id} threadId={threadId} handoff={handoff} onDone={() => setDone((all) => [...all, handoff.handoff_id])} />);
}

function DraftCard({ threadId, handoff, onDone }: { threadId: string; handoff: ResumableHandoff; onDone: () => void }) {
  const { face } = useAgents();
  const known = face(handoff.agent);
  const resume = useMutation({ mutationFn: () => resumeHandoff(threadId, handoff.handoff_id), onSuccess: onDone });
  const discard = useMutation({ mutationFn: () => discardHandoff(threadId, handoff.handoff_id), onSuccess: onDone });
  const error = resume.error ?? discard.error;
  const { progress } = handoff;
  return (
    <section className={styles.card} aria-label={`Draft with ${handoff.display_name}`} data-hue={hueOf(known.color, handoff.agent)}>
      <div className={styles.cardHead}>
        <AgentBadge {...known} name={handoff.display_name} strong />
        <IconButton icon={X} label="Not now" size="small" onClick={onDone} />
      </div>
      <p className={styles.cardText}>{handoff.message}</p>
      {progress && (
        <>
          <p className="soft">Step {progress.step} of {progress.total} · {progress.label}</p>
          <ProgressBar value={progress.step} max={progress.total} label={progress.label} />
        </>
      )}
      {error && <ErrorNote>{sentence(error)}</ErrorNote>}
      <div className={styles.cardActions}>
        <Button kind="primary" size="small" busy={resume.isPending} disabled={discard.isPending} onClick={() => resume.mutate()}>Continue</Button>
        <Button size="small" busy={discard.isPending} disabled={resume.isPending} onClick={() => discard.mutate()}>Discard the draft</Button>
      </div>
    </section>
  );
}
