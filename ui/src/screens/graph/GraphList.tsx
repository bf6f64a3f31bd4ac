import { CircleAlert } from 'lucide-react';
import { Link } from 'wouter';
import { useAgents } from '@/api/useAgents';
import { AgentBadge, Table, type Column } from '@/design';
import { duration } from '@/lib/format';
import styles from './List.module.css';
import { KIND_IDS, KINDS } from './kinds';
import { matches, ownership, type Edge, type Model, type Node } from './model';
import { stepsText, type Overlay } from './overlay';
import { rolesOf } from './roles';

/** The same information as the drawing, as a table. */
export function GraphList({ model, kinds, search, overlay }: { model: Model; kinds: ReadonlySet<string>; search: string; overlay?: Overlay | undefined }) {
  const { face } = useAgents();
  const rows = model.nodes.filter((node) => matches(node, search.trim()));
  const edges = model.edges.filter((edge) => kinds.has(edge.kind));
  const columns: Column<Node>[] = [
    { key: 'agent', title: 'Agent', cell: (node) => (node.missing ? <span className={styles.missing}>{node.id}</span> : <Link href={`/agents/${encodeURIComponent(node.id)}`} className={styles.agent}><AgentBadge {...face(node.id)} /></Link>) },
    ...(overlay ? [{ key: 'run', title: 'In the run', cell: (node: Node) => <InRun node={node} overlay={overlay} /> }] : []),
    { key: 'roles', title: 'Role', wide: true, cell: (node) => <>{rolesOf(node).join(', ') || 'Agent'}{!node.missing && <span className={styles.sub}>{ownership(node, (id) => face(id).name)}</span>}</> },
    { key: 'to', title: 'Works with', cell: (node) => <Ends edges={edges.filter((edge) => edge.from === node.id)} side="to" /> },
    { key: 'from', title: 'Involved by', wide: true, cell: (node) => <Ends edges={edges.filter((edge) => edge.to === node.id)} side="from" /> },
    { key: 'problems', title: 'Problems', cell: (node) => (node.findings.length === 0 ? <span className="faint">None</span> : <ul className={styles.problems}>{node.findings.map((finding) => <li key={finding}><CircleAlert size={13} aria-hidden />{finding}</li>)}</ul>) },
  ];
  return <div className={styles.list}><Table label="Agents and their relations" columns={columns} rows={rows} rowKey={(node) => node.id} /></div>;
}

function Ends({ edges, side }: { edges: Edge[]; side: 'from' | 'to' }) {
  const { face } = useAgents();
  if (edges.length === 0) return <span className="faint">–</span>;
  return (
    <dl className={styles.ends}>
      {KIND_IDS.filter((kind) => edges.some((edge) => edge.kind === kind)).map((kind) => (
        <div key={kind}>
          <dt>{side === 'to' ? KINDS[kind].verb : KINDS[kind].passive}</dt>
          <dd>{edges.filter((edge) => edge.kind === kind).map((edge, at) => <span key={edge.id} title={edge.label}>{at > 0 && ', '}<Link href={`/agents/${encodeURIComponent(edge[side])}`} className={styles.link}>{face(edge[side]).name}</Link></span>)}</dd>
        </div>
      ))}
    </dl>
  );
}

function InRun({ node, overlay }: { node: Node; overlay: Overlay }) {
  const mark = overlay.byAgent.get(node.id);
  if (!mark) return <span className="faint">–</span>;
  return <>Step {stepsText(mark)}<span className={mark.failed ? styles.failed : styles.sub}>{mark.running ? 'working' : `${mark.failed ? 'failed after ' : ''}${duration(mark.milliseconds)}`}</span></>;
}
