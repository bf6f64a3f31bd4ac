import { ListFilter } from 'lucide-react';
import { Link } from 'wouter';
import type { Run } from '@/api/types';
import { IconButton, Time, type Column } from '@/design';
import { compact, cost, count, duration, shortId, tokens } from '@/lib/format';
import { isOver } from '@/run/status';
import { RunStatus } from '@/run/RunStatus';
import { elapsed } from '../times';
import { RunAgents } from '../RunAgents';
import styles from './RunsTable.module.css';

interface ColumnContext {
  now: number;
  withUser: boolean;
  titleOf: (threadId: string) => string;
  onThread: (threadId: string) => void;
  selected: ReadonlySet<string>;
  mayCancel: (run: Run) => boolean;
  onSelect: (runId: string, on: boolean) => void;
  /** Whether there is anything to select at all. */
  withSelection: boolean;
  /** Errors in a column of their own; otherwise below the status. */
  withErrors: boolean;
}

export function runColumns(context: ColumnContext): Column<Run>[] {
  const { now, withUser, titleOf, onThread } = context;
  const columns: (Column<Run> | false)[] = [
    context.withSelection && { key: 'select', title: 'Select', cell: (run) => <Select run={run} {...context} /> },
    { key: 'status', title: 'Status', cell: (run) => <><Link href={`/runs/${run.run_id}`} className={styles.status}><RunStatus status={run.status} /></Link>{!context.withErrors && <RunError run={run} />}</> },
    { key: 'agent', title: 'Agent', cell: (run) => <div className={styles.agent}><RunAgents agent={run.agent} answeredBy={run.answered_by} /></div> },
    {
      key: 'thread', title: 'Conversation', wide: true,
      cell: (run) => (
        <div className={styles.thread}>
          <Link href={`/threads/${run.thread_id}`} className="truncate" dir="auto" title={titleOf(run.thread_id)}>{titleOf(run.thread_id)}</Link>
          <IconButton icon={ListFilter} label="Only runs of this conversation" size="small" className={styles.filter} onClick={() => onThread(run.thread_id)} />
        </div>
      ),
    },
    withUser && { key: 'user', title: 'User', wide: true, cell: (run) => <span className={styles.user} title={run.user_id}>{run.user_id}</span> },
    { key: 'started', title: 'Started', cell: (run) => <span className={styles.nowrap}><Time at={run.started_at ?? run.created_at} /></span> },
    { key: 'duration', title: 'Duration', numeric: true, wide: true, cell: (run) => <Elapsed run={run} now={now} /> },
    { key: 'tokens', title: 'Tokens', numeric: true, wide: true, cell: (run) => <span title={`${count(run.usage.input_tokens)} in, ${count(run.usage.output_tokens)} out`}>{compact(tokens(run.usage))}</span> },
    { key: 'cost', title: 'Cost', numeric: true, wide: true, cell: (run) => cost(run.usage) },
    context.withErrors && { key: 'error', title: 'Error', wide: true, cell: (run) => <RunError run={run} /> },
  ];
  return columns.filter((column): column is Column<Run> => column !== false);
}

function Select({ run, selected, mayCancel, onSelect }: { run: Run } & ColumnContext) {
  if (isOver(run.status) || !mayCancel(run)) return null;
  return <input type="checkbox" className={styles.checkbox} aria-label={`Select run ${shortId(run.run_id)} of ${run.agent}`} checked={selected.has(run.run_id)} onChange={(event) => onSelect(run.run_id, event.target.checked)} />;
}

function Elapsed({ run, now }: { run: Run; now: number }) {
  const took = elapsed(run, now);
  return took === undefined ? '–' : duration(took);
}

function RunError({ run }: { run: Run }) {
  if (run.error && run.status !== 'cancelled') return <span className={styles.error} title={run.error.message}>{run.error.message}</span>;
  return run.limit ? <span className={styles.limit} title={`It ended early because of the limit ${run.limit}.`}>limit: {run.limit}</span> : null;
}
