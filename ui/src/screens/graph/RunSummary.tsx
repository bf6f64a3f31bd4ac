import { Link } from 'wouter';
import { sentence } from '@/api/problem';
import type { RunDetail } from '@/api/types';
import { Button, Elapsed, ErrorNote } from '@/design';
import { plural } from '@/lib/format';
import { RunStatus } from '@/run/RunStatus';
import styles from './Graph.module.css';

/** One line about the run whose path is shown. */
export function RunSummary({ run, error, steps, onClose }: { run: RunDetail | undefined; error: Error | null; steps: number; onClose: () => void }) {
  const hide = <Button size="small" kind="ghost" onClick={onClose}>Hide the path</Button>;
  if (error) return <ErrorNote title="The run could not be loaded." action={hide}>{sentence(error)}</ErrorNote>;
  if (!run) return <p className="soft" role="status">Loading the run…</p>;
  const start = Date.parse(run.started_at ?? run.created_at);
  return (
    <div className={styles.runNote}>
      <RunStatus status={run.status} />
      <span>{plural(steps, 'step')}, <Elapsed since={start} until={run.finished_at ? Date.parse(run.finished_at) : undefined} /></span>
      {run.error && <span className={styles.runError}>{run.error.message}</span>}
      <Link href={`/runs/${run.run_id}`}>Open the run</Link>
      {hide}
    </div>
  );
}
