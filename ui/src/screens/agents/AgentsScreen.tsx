import { useQuery } from '@tanstack/react-query';
import { Search, Waypoints } from 'lucide-react';
import { useDeferredValue } from 'react';
import { Link } from 'wouter';
import { queries } from '@/api/queries';
import type { Agent } from '@/api/useAgents';
import { Button, EmptyState, Page } from '@/design';
import { useSearchState } from '@/lib/useSearchState';
import { LoadError } from '@/shell/LoadError';
import { AgentCard } from './AgentCard';
import { AgentFilters } from './AgentFilters';
import styles from './Agents.module.css';
import { filterId, findingsOf, matches, passes } from './filters';
import { FirstAgent } from './FirstAgent';
import { RosterStatus } from './RosterStatus';

export default function AgentsScreen() {
  const graph = <Link href="/graph" className={styles.headerLink}><Waypoints size={15} aria-hidden />Open the graph</Link>;
  return (
    <Page title="Agents" lead="All loaded agents with their tools, models and related agents." actions={graph}>
      <RosterStatus />
      <AgentGrid />
    </Page>
  );
}

function AgentGrid() {
  const { data: agents, error, refetch } = useQuery(queries.agents());
  const { data: roster } = useQuery(queries.roster());
  const [params, set] = useSearchState();
  const filter = filterId(params.get('filter'));
  const search = useDeferredValue(params.get('q') ?? '');
  if (error && !agents) return <LoadError what="the agents" error={error} onRetry={() => void refetch()} />;
  if (!agents) return <GridSkeleton />;
  if (agents.length === 0) return <FirstAgent />;
  const found = agents.filter((agent) => passes(agent, filter) && matches(agent, search));
  const diagnostics = roster?.diagnostics ?? [];
  return (
    <>
      <AgentFilters agents={agents} filter={filter} shown={found.length} />
      {found.length === 0
        ? <EmptyState icon={Search} title="No agent matches" action={<Button onClick={() => set({ q: undefined, filter: undefined })}>Show all agents</Button>}>No agent fits this search and filter.</EmptyState>
        : <ul className={styles.grid}>{found.map((agent) => <Cell key={agent.id} agent={agent} findings={findingsOf(agent, diagnostics).length} />)}</ul>}
    </>
  );
}

function Cell({ agent, findings }: { agent: Agent; findings: number }) {
  return <li className={styles.cell}><AgentCard agent={agent} findings={findings} /></li>;
}

function GridSkeleton() {
  return (
    <div className={styles.grid} role="status" aria-label="Loading the agents">
      {Array.from({ length: 6 }, (_, at) => <div key={at} className={styles.placeholder} />)}
    </div>
  );
}
