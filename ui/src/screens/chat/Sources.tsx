import { useAgents } from '@/api/useAgents';
import type { SourceRef } from '@/api/events';
import { AgentBadge } from '@/design';
import styles from './Message.module.css';

/** The agents whose results are in an answer. */
export function Sources({ sources, runId }: { sources: SourceRef[]; runId: string }) {
  const { face } = useAgents();
  const agents = [...new Set(sources.map(({ agent }) => agent))];
  return (
    <div className={styles.sources}>
      <span className="faint" id={`${runId}-sources`}>Sources</span>
      <ul role="list" aria-labelledby={`${runId}-sources`}>
        {agents.map((agent) => <li key={agent} className={styles.chip}><AgentBadge {...face(agent)} /></li>)}
      </ul>
    </div>
  );
}
