import { useMutation, useQueryClient } from '@tanstack/react-query';
import { X } from 'lucide-react';
import { useState } from 'react';
import { sentence } from '@/api/problem';
import { Button, Dialog, ErrorNote, IconButton } from '@/design';
import { plural } from '@/lib/format';
import { cancelRun } from '@/run/queries';
import styles from './RunsTable.module.css';

/** Cancels the selected runs, after asking once. */
export function BulkCancel({ ids, onDone }: { ids: string[]; onDone: () => void }) {
  const [asking, setAsking] = useState<'stop' | 'abort'>();
  const client = useQueryClient();
  const cancel = useMutation({
    mutationFn: async (mode: 'stop' | 'abort') => {
      const results = await Promise.allSettled(ids.map((id) => cancelRun(id, mode)));
      const failed = results.filter((result) => result.status === 'rejected');
      if (failed.length > 0) throw new Error(`${failed.length} of ${ids.length} runs could not be cancelled: ${sentence(failed[0]?.reason)}`);
    },
    onSuccess: () => { setAsking(undefined); onDone(); },
    onSettled: () => client.invalidateQueries({ queryKey: ['runs'] }),
  });
  const runs = plural(ids.length, 'run');
  return (
    <div className={styles.bulk} role="region" aria-label="Selected runs">
      <span className="tabular">{runs} selected</span>
      <Button size="small" onClick={() => setAsking('stop')}>Stop</Button>
      <Button size="small" kind="danger" onClick={() => setAsking('abort')}>Abort</Button>
      <IconButton icon={X} size="small" label="Clear the selection" onClick={onDone} />
      {asking && (
        <Dialog
          title={asking === 'stop' ? `Stop ${runs}?` : `Abort ${runs}?`}
          onClose={() => setAsking(undefined)}
          actions={
            <>
              <Button onClick={() => setAsking(undefined)}>Keep running</Button>
              <Button kind="danger" busy={cancel.isPending} onClick={() => cancel.mutate(asking)}>{asking === 'stop' ? `Stop ${runs}` : `Abort ${runs}`}</Button>
            </>
          }
        >
          <p>{asking === 'stop' ? 'Each one says what it has so far in one closing turn and then ends.' : 'Each one ends at once, without an answer.'}</p>
          {cancel.isError && <ErrorNote>{sentence(cancel.error)}</ErrorNote>}
        </Dialog>
      )}
    </div>
  );
}
