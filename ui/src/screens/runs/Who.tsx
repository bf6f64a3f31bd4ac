import { ArrowRight } from 'lucide-react';
import { useAgents } from '@/api/useAgents';
import { AgentBadge } from '@/design';
import styles from './Who.module.css';

/** An agent by its id. */
export function Agent({ id, strong }: { id: string; strong?: boolean }) {
  return <AgentBadge {...useAgents().face(id)} {...(strong && { strong })} />;
}

/** Who was asked and, where that is another agent, who answered. */
export function Who({ agent, answeredBy }: { agent: string; answeredBy?: string | undefined }) {
  if (!answeredBy || answeredBy === agent) return <Agent id={agent} />;
  return (
    <span className={styles.who}>
      <Agent id={agent} />
      <span className={styles.answered}>
        <ArrowRight size={13} role="img" aria-label="answered by" className={styles.arrow} />
        <Agent id={answeredBy} />
      </span>
    </span>
  );
}
