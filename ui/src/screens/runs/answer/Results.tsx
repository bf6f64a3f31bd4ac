import { CircleCheck, CircleX } from 'lucide-react';
import type { Schemas } from '@/api/client';
import { duration } from '@/lib/format';
import { Agent } from '../Agent';
import styles from './AnswerTab.module.css';
import { Text } from './Text';

/** The result of each sub-agent, folded. */
export function Results({ results }: { results: Schemas['SubAgentResult'][] }) {
  return results.map((result, at) => (
    <details key={at} className={styles.result}>
      <summary>
        {result.success ? <CircleCheck size={14} role="img" aria-label="succeeded" className={styles.ok} /> : <CircleX size={14} role="img" aria-label="failed" className={styles.failed} />}
        <Agent id={result.agent_id} />
        {result.error && <span className={styles.reason}>{result.error}</span>}
        <span className={styles.time}>{duration(result.latency_ms)}</span>
      </summary>
      <div className={styles.resultText}>{result.response ? <Text text={result.response} /> : <p className="soft">{result.error_type && <code>{result.error_type}: </code>}{result.error ?? 'It returned nothing.'}</p>}</div>
    </details>
  ));
}
