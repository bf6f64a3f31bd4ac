import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { X } from 'lucide-react';
import { useState } from 'react';
import { useLocation } from 'wouter';
import { sentence } from '@/api/problem';
import { queries } from '@/api/queries';
import type { ResumableHandoff } from '@/api/types';
import { useAgents } from '@/api/useAgents';
import { AgentBadge, Button, ErrorNote, hueOf, IconButton } from '@/design';
import { resumeHandoff } from '@/thread/actions';
import styles from './UnfinishedWork.module.css';

/** In a new conversation: the newest work with a specialist that was left in another one. */
export function UnfinishedWork() {
  const { data } = useQuery(queries.resumable());
  const [later, setLater] = useState<string>();
  const newest = data?.data[0];
  return newest && newest.handoff_id !== later ? <Notice work={newest} onLater={() => setLater(newest.handoff_id)} /> : null;
}

function Notice({ work, onLater }: { work: ResumableHandoff; onLater: () => void }) {
  const { face } = useAgents();
  const known = face(work.agent);
  const [, navigate] = useLocation();
  const client = useQueryClient();
  const resume = useMutation({
    mutationFn: () => resumeHandoff(work.thread_id, work.handoff_id),
    onSuccess: () => {
      void client.invalidateQueries({ queryKey: queries.resumable().queryKey });
      navigate(`/threads/${work.thread_id}`);
    },
  });
  return (
    <section className={styles.notice} aria-label={`Unfinished work with ${work.display_name}`} data-hue={hueOf(known.color, work.agent)}>
      <div className={styles.text}>
        <AgentBadge {...known} name={work.display_name} />
        <p>{work.message}</p>
      </div>
      <div className={styles.actions}>
        <Button kind="primary" size="small" busy={resume.isPending} onClick={() => resume.mutate()}>Continue</Button>
        <IconButton icon={X} label="Not now" size="small" onClick={onLater} />
      </div>
      {resume.error && <ErrorNote>{sentence(resume.error)}</ErrorNote>}
    </section>
  );
}
