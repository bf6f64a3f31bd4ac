import { ArrowRightLeft, Cloud, Cpu, EyeOff, TriangleAlert, Users, Wrench } from 'lucide-react';
import { memo } from 'react';
import { Link } from 'wouter';
import type { Agent } from '@/api/useAgents';
import { AgentBadge, Badge } from '@/design';
import { plural } from '@/lib/format';
import styles from './Agents.module.css';

/** One agent of the list. The whole card leads to its page. */
export const AgentCard = memo(function AgentCard({ agent, findings }: { agent: Agent; findings: number }) {
  const tools = agent.tools?.length ?? 0;
  const related = agent.related?.length ?? 0;
  return (
    <article className={styles.card}>
      <header className={styles.cardHeader}>
        <h2 className={styles.cardTitle}>
          <Link href={`/agents/${encodeURIComponent(agent.id)}`} className={styles.cardLink}><AgentBadge id={agent.id} name={agent.display_name} color={agent.badge.color} icon={agent.badge.icon} strong /></Link>
        </h2>
        <code className={styles.cardId}>{agent.id}</code>
      </header>
      <p className={styles.description} dir="auto">{agent.description}</p>
      <p className={styles.roles}>
        {agent.holds_threads && <Badge tone="accent"><ArrowRightLeft size={12} aria-hidden />Takes handoffs</Badge>}
        {agent.kind === 'remote' && <Badge tone="info"><Cloud size={12} aria-hidden />Remote</Badge>}
        {agent.badge.hidden && <Badge><EyeOff size={12} aria-hidden />Hidden</Badge>}
        {findings > 0 && <Badge tone="warning"><TriangleAlert size={12} aria-hidden />{plural(findings, 'finding')}</Badge>}
      </p>
      <footer className={styles.cardFacts}>
        <span className={styles.fact} title="Model"><Cpu size={13} aria-hidden /><span className="truncate">{agent.model.length > 0 ? agent.model.join(', ') : 'Default model'}</span></span>
        <span className={styles.fact}><Wrench size={13} aria-hidden />{tools === 0 ? 'No tools' : plural(tools, 'tool')}</span>
        {related > 0 && <span className={styles.fact} title={`Works with ${agent.related.join(', ')}`}><Users size={13} aria-hidden />{related} related</span>}
      </footer>
    </article>
  );
});
