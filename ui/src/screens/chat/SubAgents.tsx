import { useQuery } from '@tanstack/react-query';
import { ChevronRight, TriangleAlert } from 'lucide-react';
import { memo, useId, useState } from 'react';
import { sentence } from '@/api/problem';
import { useAgents } from '@/api/useAgents';
import { AgentBadge, cx, ErrorNote, Skeleton, StatusDot } from '@/design';
import { runQuery } from '@/run/queries';
import type { RunState } from '@/thread/state';
import { liveRows, storedRows, summaryOf } from './agentRows';
import { SubAgentRow } from './SubAgentRow';
import styles from './SubAgents.module.css';

/** The sub-agents of one answer, as one line that opens. */
export const SubAgents = memo(function SubAgents({ run }: { run: RunState }) {
  const [isOpen, setIsOpen] = useState(false);
  const id = useId();
  const { face } = useAgents();
  const rows = liveRows(run);
  const statuses = rows.length > 0 ? rows.map(({ status }) => status) : run.sources.map(() => 'done' as const);
  const agents = [...new Set(rows.length > 0 ? rows.map(({ agent }) => agent) : run.sources.map(({ agent }) => agent))];
  const isWorking = statuses.includes('running');
  const hasFailed = statuses.includes('failed');
  return (
    <section className={styles.group} aria-label="Agents behind this answer">
      <button type="button" className={styles.summary} aria-expanded={isOpen} aria-controls={id} onClick={() => setIsOpen(!isOpen)}>
        <ChevronRight size={14} aria-hidden className={cx(styles.chevron, isOpen && styles.open)} />
        {isWorking && <StatusDot tone="info" label="Working" pulse />}
        {!isWorking && hasFailed && <TriangleAlert size={14} aria-label="Partly failed" className={styles.warning} />}
        <span className="tabular">{summaryOf(statuses)}</span>
        {!isOpen && <span className={styles.faces} aria-hidden>{agents.slice(0, 4).map((agent) => <AgentBadge key={agent} {...face(agent)} />)}</span>}
      </button>
      {isOpen && <div id={id} className={styles.rows}>{rows.length > 0 ? rows.map((row) => <SubAgentRow key={row.id} row={row} />) : <StoredRows runId={run.id} />}</div>}
    </section>
  );
});

/** The sub-agents of a run that this tab did not follow. They are loaded when the line is opened. */
function StoredRows({ runId }: { runId: string }) {
  const { data, error, isPending } = useQuery(runQuery(runId));
  if (isPending) return <Skeleton rows={2} height={20} />;
  if (error) return <ErrorNote>{sentence(error)}</ErrorNote>;
  return storedRows(data.sessions).map((row) => <SubAgentRow key={row.id} row={row} />);
}
