import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link2, OctagonX, Square, Terminal } from 'lucide-react';
import { useState } from 'react';
import { sentence } from '@/api/problem';
import { queries } from '@/api/queries';
import type { RunDetail } from '@/api/types';
import { useMay } from '@/api/useMay';
import { Button, CopyTextButton, Dialog, ErrorNote } from '@/design';
import { cancelRun, runQuery } from '@/run/queries';
import { isOver } from '@/run/status';
import { isOwn } from '../times';
import { curlOf } from './curl';

export function RunActions({ run }: { run: RunDetail }) {
  const may = useMay();
  const me = useQuery(queries.me());
  const mayCancel = !isOver(run.status) && (may('run:cancel') || isOwn(run, me.data?.user_id));
  return (
    <>
      {mayCancel && <CancelButtons run={run} />}
      <CopyTextButton icon={Link2} label="Copy link" text={() => location.href} />
      <CopyTextButton icon={Terminal} label="Copy curl" text={() => curlOf(location.origin, run.run_id, me.data?.auth === 'required')} />
    </>
  );
}

function CancelButtons({ run }: { run: RunDetail }) {
  const [asking, setAsking] = useState(false);
  const client = useQueryClient();
  const cancel = useMutation({
    mutationFn: (mode: 'stop' | 'abort') => cancelRun(run.run_id, mode),
    onSuccess: () => { setAsking(false); return client.invalidateQueries({ queryKey: runQuery(run.run_id).queryKey }); },
  });
  const isStopping = run.cancel !== undefined || cancel.isSuccess;
  return (
    <>
      <Button icon={Square} busy={cancel.isPending && cancel.variables === 'stop'} disabled={isStopping} title="It says what it has so far in one closing turn, then ends" onClick={() => cancel.mutate('stop')}>{isStopping ? 'Stopping…' : 'Stop'}</Button>
      {run.cancel !== 'abort' && <Button icon={OctagonX} kind="danger" onClick={() => setAsking(true)}>Abort</Button>}
      {cancel.isError && !asking && <ErrorNote>{sentence(cancel.error)}</ErrorNote>}
      {asking && (
        <Dialog
          title="Abort this run?"
          onClose={() => setAsking(false)}
          actions={
            <>
              <Button onClick={() => setAsking(false)}>Keep running</Button>
              <Button kind="danger" busy={cancel.isPending} onClick={() => cancel.mutate('abort')}>Abort run</Button>
            </>
          }
        >
          <p>It ends at once, without an answer. Stop instead lets it say what it has so far.</p>
          {cancel.isError && <ErrorNote>{sentence(cancel.error)}</ErrorNote>}
        </Dialog>
      )}
    </>
  );
}
