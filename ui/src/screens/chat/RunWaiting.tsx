import { useMutation } from '@tanstack/react-query';
import { CirclePause } from 'lucide-react';
import { sentence } from '@/api/problem';
import { Button, ErrorNote } from '@/design';
import { plural } from '@/lib/format';
import type { RunState } from '@/thread/state';
import { useChat } from './context';
import styles from './RunNote.module.css';

/** The line of a run that waits for people. Nothing happens until they decide, so no time is counted. */
export function RunWaiting({ run, open }: { run: RunState; open: number }) {
  const { mayWrite, cancel } = useChat();
  const stop = useMutation({ mutationFn: () => cancel(run.id) });
  return (
    <>
      <div className={styles.waiting}>
        <CirclePause size={15} aria-hidden className={styles.waitingIcon} />
        <span>{open > 0 ? `Waiting for ${plural(open, 'decision')}` : 'Decided. Continuing…'}</span>
        {mayWrite && open > 0 && <Button kind="ghost" size="small" busy={stop.isPending} onClick={() => stop.mutate()}>Stop instead</Button>}
      </div>
      {stop.error && <ErrorNote>{sentence(stop.error)}</ErrorNote>}
    </>
  );
}
