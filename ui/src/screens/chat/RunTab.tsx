import { useQuery } from '@tanstack/react-query';
import { Link } from 'wouter';
import { sentence } from '@/api/problem';
import type { Session } from '@/api/types';
import { useAgents } from '@/api/useAgents';
import { AgentBadge, ErrorNote, Skeleton } from '@/design';
import { compact, cost, duration, tokens } from '@/lib/format';
import { runQuery } from '@/run/queries';
import { RunStatus } from '@/run/RunStatus';
import type { ThreadState } from '@/thread/state';
import { useChat } from './context';
import styles from './Inspector.module.css';

/** The latest run: who worked in it, for how long, and what it cost. */
export function RunTab({ state }: { state: ThreadState }) {
  const { mayTrace } = useChat();
  const runId = state.activeRun ?? state.items.findLast(({ runId }) => runId !== undefined)?.runId;
  const { data, error, isPending } = useQuery({ ...runQuery(runId ?? ''), enabled: runId !== undefined });
  if (runId === undefined) return <p className="faint">Send a message, and this shows who works on the answer.</p>;
  if (isPending) return <Skeleton rows={4} height={24} />;
  if (error) return <ErrorNote>{sentence(error)}</ErrorNote>;
  return (
    <div className={styles.section}>
      <div className={styles.runHead}>
        <RunStatus status={data.status} />
        <span className="tabular faint">{compact(tokens(data.usage))} tokens · {cost(data.usage)}</span>
      </div>
      <ul role="list" className={styles.tree}>{data.sessions.map((session) => <Node key={session.session_id} session={session} depth={0} />)}</ul>
      {mayTrace && <Link href={`/runs/${runId}`}>Open the run</Link>}
    </div>
  );
}

function Node({ session, depth }: { session: Session; depth: number }) {
  const { face } = useAgents();
  const end = session.finished_at ? Date.parse(session.finished_at) : Date.now();
  return (
    <li>
      <div className={styles.node} style={{ paddingInlineStart: depth * 16 }}>
        <AgentBadge {...face(session.agent)} />
        <span className={styles.numbers}>
          {session.status !== 'completed' && <RunStatus status={session.status} />}
          <span>{duration(end - Date.parse(session.started_at))}</span>
          <span className={styles.cost}>{cost(session.own)}</span>
        </span>
      </div>
      {session.error && <p className={styles.error}>{session.error.message}</p>}
      {session.sessions.length > 0 && <ul role="list">{session.sessions.map((child) => <Node key={child.session_id} session={child} depth={depth + 1} />)}</ul>}
    </li>
  );
}
