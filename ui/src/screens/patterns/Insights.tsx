import { useAgents } from '@/api/useAgents';
import { AgentBadge, Card } from '@/design';
import { count, dollars } from '@/lib/format';
import { gradeOf, percent, type Insight } from './data';
import styles from './Patterns.module.css';

/** Which agent serves which class of questions best. */
export function Insights({ insights }: { insights: Insight[] }) {
  const { face } = useAgents();
  if (insights.length === 0) return null;
  return (
    <Card>
      <h2>Who serves what</h2>
      <p className="faint">Requests that were completed, not disliked and not asked again soon. Evidence counts half after a week.</p>
      <ul className={styles.insights}>
        {insights.map(({ query_class, agents }) => (
          <li key={query_class}>
            <strong dir="auto">{query_class} questions</strong>
            {agents.map((one) => (
              <span key={one.agent} className={styles.served} title={one.average_cost_usd > 0 ? `${dollars(one.average_cost_usd)} on average` : undefined}>
                <AgentBadge {...face(one.agent)} />
                <span className={styles[gradeOf(one.success_rate)]}>{percent(one.success_rate)}</span>
                <span className="faint">of {count(one.of)}</span>
              </span>
            ))}
          </li>
        ))}
      </ul>
    </Card>
  );
}
