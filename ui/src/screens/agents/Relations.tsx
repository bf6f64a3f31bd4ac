import { useQuery } from '@tanstack/react-query';
import { Link } from 'wouter';
import { useAgents } from '@/api/useAgents';
import { AgentBadge, Card, Skeleton } from '@/design';
import { LoadError } from '@/shell/LoadError';
import { KIND_IDS, KINDS } from '../graph/kinds';
import { graphQuery, type GraphEdge } from '../graph/queries';
import styles from './Agent.module.css';

/** Whom it can involve and who can involve it. */
export function Relations({ id }: { id: string }) {
  const { data: graph, error, refetch } = useQuery(graphQuery());
  if (error && !graph) return <LoadError what="the related agents" error={error} onRetry={() => void refetch()} />;
  return (
    <>
      <Card><h2 className={styles.heading}>Works with</h2>{graph ? <RelationList edges={graph.edges.filter((edge) => edge.from === id)} side="to" empty="It works alone: it calls, consults and hands off to no other agent." /> : <Skeleton rows={2} />}</Card>
      <Card><h2 className={styles.heading}>Involved by</h2>{graph ? <RelationList edges={graph.edges.filter((edge) => edge.to === id)} side="from" empty={graph.main === id ? 'It is the main agent: it answers when no other agent is named.' : 'No other agent involves it. People can address it by name.'} /> : <Skeleton rows={2} />}</Card>
    </>
  );
}

export function RelationList({ edges, side, empty }: { edges: GraphEdge[]; side: 'from' | 'to'; empty: string }) {
  const { face } = useAgents();
  if (edges.length === 0) return <p className="soft">{empty}</p>;
  const groups = KIND_IDS.map((kind) => [kind, edges.filter((edge) => edge.kind === kind)] as const).filter(([, group]) => group.length > 0);
  return (
    <div className={styles.relations}>
      {groups.map(([kind, group]) => (
        <section key={kind}>
          <h3 className={styles.relation}>{side === 'to' ? KINDS[kind].verb : KINDS[kind].passive}</h3>
          <ul className={styles.related}>
            {group.map((edge, at) => (
              <li key={at}>
                <Link href={`/agents/${encodeURIComponent(edge[side])}`} className={styles.relatedLink}><AgentBadge {...face(edge[side])} /></Link>
                {edge.label && <span className={styles.condition} dir="auto">{edge.label}</span>}
                {edge.problem && <span className={styles.problem}>{edge.problem}</span>}
              </li>
            ))}
          </ul>
        </section>
      ))}
    </div>
  );
}
