import { ChevronRight } from 'lucide-react';
import { Fragment } from 'react';
import { useAgents } from '@/api/useAgents';
import { AgentBadge } from '@/design';
import styles from './Approval.module.css';

/** Who asks, and through whom: Assistant › Worker. */
export function AgentPath({ agents }: { agents: string[] }) {
  const { face } = useAgents();
  const names = agents.map((agent) => face(agent).name).join(', then ');
  return (
    <span className={styles.path} role="group" aria-label={agents.length > 1 ? `Asked through ${names}` : `Asked by ${names}`}>
      {agents.map((agent, at) => (
        <Fragment key={`${at}:${agent}`}>
          {at > 0 && <ChevronRight size={13} aria-hidden className={styles.arrow} />}
          <AgentBadge {...face(agent)} strong={at === agents.length - 1} />
        </Fragment>
      ))}
    </span>
  );
}
