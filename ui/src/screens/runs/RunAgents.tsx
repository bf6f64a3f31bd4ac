import { ArrowRight } from 'lucide-react';
import { Agent } from './Agent';
import styles from './RunAgents.module.css';

/** The agent that was asked and, if another one answered, that one too. */
export function RunAgents({ agent, answeredBy }: { agent: string; answeredBy?: string | undefined }) {
  if (!answeredBy || answeredBy === agent) return <Agent id={agent} />;
  return (
    <span className={styles.agents}>
      <Agent id={agent} />
      <span className={styles.answered}>
        <ArrowRight size={13} role="img" aria-label="answered by" className={styles.arrow} />
        <Agent id={answeredBy} />
      </span>
    </span>
  );
}
