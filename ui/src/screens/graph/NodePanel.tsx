import { CircleAlert, X } from 'lucide-react';
import { Link } from 'wouter';
import { useAgents } from '@/api/useAgents';
import { AgentBadge, Badge, Button, Dialog, IconButton } from '@/design';
import { useMedia } from '@/lib/useMedia';
import { RelationList } from '../agents/Relations';
import { ownership, type Model, type Node } from './model';
import type { Overlay } from './overlay';
import { Stages, Visits } from './PanelParts';
import styles from './Panel.module.css';
import { rolesOf } from './roles';

interface PanelProps { node: Node; model: Model; overlay?: Overlay | undefined; onClose: () => void; onOnly: () => void }

/** The facts of one agent: beside the graph, or over it where there is no room. */
export function NodePanel(props: PanelProps) {
  const isNarrow = useMedia('(max-width: 1100px)');
  if (isNarrow) return <Dialog kind="sheet" title={props.node.display_name} onClose={props.onClose}><Content {...props} /></Dialog>;
  return (
    <aside className={styles.panel} aria-label={props.node.display_name}>
      <header className={styles.header}><h2>{props.node.display_name}</h2><IconButton icon={X} label="Close" size="small" onClick={props.onClose} /></header>
      <Content {...props} />
    </aside>
  );
}

function Content({ node, model, overlay, onOnly }: PanelProps) {
  const { face } = useAgents();
  const visits = overlay?.visits.map((visit, at) => ({ visit, step: at + 1 })).filter(({ visit }) => visit.agent === node.id) ?? [];
  return (
    <div className={styles.content}>
      <AgentBadge {...face(node.id)} name={node.id} />
      {node.description && <p className="soft" dir="auto">{node.description}</p>}
      <p className={styles.badges}>{rolesOf(node).map((role) => <Badge key={role}>{role}</Badge>)}</p>
      {!node.missing && <p>{ownership(node, (id) => face(id).name)}</p>}
      {node.findings.length > 0 && <ul className={styles.findings}>{node.findings.map((finding) => <li key={finding}><CircleAlert size={14} aria-hidden />{finding}</li>)}</ul>}
      {!node.missing && (
        <p className={styles.links}>
          <Link href={`/agents/${encodeURIComponent(node.id)}`} className={styles.open}>Open the agent page</Link>
          <Button size="small" onClick={onOnly}>Only from here</Button>
        </p>
      )}
      {visits.length > 0 && <section><h3>In this run</h3><Visits visits={visits} /></section>}
      {node.order.length > 1 && <section><h3>In a run, in order</h3><Stages stages={node.order} /></section>}
      <section><h3>Works with</h3><RelationList edges={model.edges.filter((edge) => edge.from === node.id)} side="to" empty="No other agent." /></section>
      <section><h3>Involved by</h3><RelationList edges={model.edges.filter((edge) => edge.to === node.id)} side="from" empty="No other agent." /></section>
    </div>
  );
}
