import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { queries } from '@/api/queries';
import type { Run } from '@/api/types';
import { useMay } from '@/api/useMay';
import { Table } from '@/design';
import { useMedia } from '@/lib/useMedia';
import { useNow } from '@/lib/useNow';
import { isOver } from '@/run/status';
import { hasActive } from '../queries';
import { isOwn } from '../times';
import { BulkCancel } from './BulkCancel';
import { runColumns } from './columns';
import styles from './RunsTable.module.css';

interface RunsTableProps { runs: Run[]; titleOf: (threadId: string) => string; onThread: (threadId: string) => void; footer: React.ReactNode }

export function RunsTable({ runs, titleOf, onThread, footer }: RunsTableProps) {
  const may = useMay();
  const me = useQuery(queries.me());
  const isWide = useMedia('(min-width: 1440px)');
  const now = useNow(hasActive(runs) ? 1_000 : 0);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const mayCancel = (run: Run) => may('run:cancel') || isOwn(run, me.data?.user_id);
  // A run that ended meanwhile is not selected any more.
  const active = runs.filter((run) => !isOver(run.status) && mayCancel(run));
  const chosen = active.filter((run) => selected.has(run.run_id)).map((run) => run.run_id);
  const onSelect = (runId: string, on: boolean) => {
    const next = new Set(selected);
    if (on) next.add(runId);
    else next.delete(runId);
    setSelected(next);
  };
  const columns = runColumns({ now, titleOf, onThread, selected, mayCancel, onSelect, withUser: may('trace:read'), withSelection: active.length > 0, withErrors: isWide && runs.some((run) => run.error ?? run.limit) });
  return (
    <>
      <div className={styles.frame}>
        <Table label="Runs" columns={columns} rows={runs} rowKey={(run) => run.run_id} footer={footer} />
      </div>
      {chosen.length > 0 && <BulkCancel ids={chosen} onDone={() => setSelected(new Set())} />}
    </>
  );
}
