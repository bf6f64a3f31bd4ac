import { ArrowLeft, ArrowRightLeft, Cloud, EyeOff, FileText, Server, Waypoints } from 'lucide-react';
import { Link } from 'wouter';
import type { AgentDetail } from '@/api/types';
import { AgentBadge, Badge, CopyButton } from '@/design';
import styles from './Agent.module.css';
import list from './Agents.module.css';

/** Who it is, where it runs and which file says so. */
export function AgentTitle({ agent }: { agent: AgentDetail }) {
  return (
    <span className={styles.title}>
      <AgentBadge id={agent.id} name={agent.display_name} color={agent.badge.color} icon={agent.badge.icon} strong />
      <span className={styles.meta}>
        <code>{agent.id}</code>
        <Badge>{agent.kind === 'remote' ? <Cloud size={12} aria-hidden /> : <Server size={12} aria-hidden />}{agent.kind === 'remote' ? 'Remote' : 'Local'}</Badge>
        {agent.remote && <Badge tone={agent.remote.reachable ? 'success' : 'danger'} title={agent.remote.reason}>{agent.remote.reachable ? 'Reachable' : 'Not reachable'}</Badge>}
        <Badge>Version {agent.version}</Badge>
        {agent.holds_threads && <Badge tone="accent"><ArrowRightLeft size={12} aria-hidden />Takes handoffs</Badge>}
        {agent.badge.hidden && <Badge><EyeOff size={12} aria-hidden />Hidden</Badge>}
        {agent.file && <span className={styles.file}><FileText size={13} aria-hidden /><code className="truncate">{agent.file}</code><CopyButton text={agent.file} label="Copy the path" /></span>}
      </span>
    </span>
  );
}

export function AgentActions({ agent }: { agent: AgentDetail }) {
  return (
    <>
      <Link href="/agents" className={styles.back}><ArrowLeft size={14} aria-hidden />All agents</Link>
      <Link href={`/graph?agent=${encodeURIComponent(agent.id)}`} className={list.headerLink}><Waypoints size={15} aria-hidden />Show in the graph</Link>
    </>
  );
}
