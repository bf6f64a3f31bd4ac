import { useAgents } from '@/api/useAgents';
import { AgentBadge, StatusDot } from '@/design';
import { duration } from '@/lib/format';
import { useNow } from '@/lib/useNow';
import type { RunState } from '@/thread/state';
import { useChat } from './context';
import styles from './RunNote.module.css';

const SILENT = 40_000;

/** The line of a run that is being worked on: what it does, for how long, and when it was last heard of. */
export function RunProgress({ run, agent }: { run: RunState; agent: string }) {
  const { lastEventAt } = useChat();
  const { face } = useAgents();
  const now = useNow(1000);
  const elapsed = Math.max(0, now - run.startedAt);
  const silence = now - Math.max(lastEventAt(), run.startedAt);
  return (
    <div className={styles.progress}>
      {agent ? <AgentBadge {...face(agent)} /> : <StatusDot tone="info" label="Working" pulse />}
      <span className={styles.activity}>{run.activity || 'Thinking…'}</span>
      {elapsed >= 1000 && <span className={styles.elapsed}>{duration(Math.floor(elapsed / 1000) * 1000)}</span>}
      {silence >= SILENT && <span className={styles.elapsed}>last update {duration(Math.floor(silence / 1000) * 1000)} ago</span>}
    </div>
  );
}
