import { ThumbsDown, ThumbsUp } from 'lucide-react';
import { useAgents } from '@/api/useAgents';
import { AgentBadge, Badge, Table, Time, type Column, type Sort } from '@/design';
import { count, dollars, duration } from '@/lib/format';
import { gradeOf, KINDS, percent, type Pattern } from './data';
import styles from './Patterns.module.css';

interface PatternsTableProps { patterns: Pattern[]; sort: Sort; onSort: (key: string) => void; onAgent: (agent: string) => void }

/** The same paths as in the diagram, by class of question. */
export function PatternsTable({ patterns, sort, onSort, onAgent }: PatternsTableProps) {
  const { face } = useAgents();
  const agent = (id: string) => <button type="button" className={styles.agent} title="Only paths of this agent" onClick={() => onAgent(id)}><AgentBadge {...face(id)} /></button>;
  const columns: Column<Pattern>[] = [
    { key: 'kind', title: 'Kind', sortable: true, wide: true, cell: (one) => <Badge title={KINDS[one.kind].explanation}>{KINDS[one.kind].label}</Badge> },
    { key: 'from', title: 'From', sortable: true, cell: (one) => agent(one.from) },
    { key: 'to', title: 'To', sortable: true, cell: (one) => agent(one.to) },
    { key: 'class', title: 'Class', hint: 'The kind of question', sortable: true, wide: true, cell: (one) => <span className={styles.class} dir="auto" title={one.query_class}>{one.query_class}</span> },
    { key: 'count', title: 'Count', numeric: true, sortable: true, cell: (one) => count(one.count) },
    { key: 'success', title: 'Success', hint: 'How many ended well', numeric: true, sortable: true, cell: (one) => <Success pattern={one} /> },
    { key: 'latency', title: 'Latency', hint: 'Mean latency', numeric: true, wide: true, sortable: true, cell: (one) => duration(one.average_latency_ms) },
    { key: 'cost', title: 'Cost', hint: 'Mean cost, of known prices', numeric: true, wide: true, sortable: true, cell: (one) => (one.average_cost_usd > 0 ? dollars(one.average_cost_usd) : <span className="faint" title="No cost with a known price">–</span>) },
    { key: 'feedback', title: 'Feedback', numeric: true, wide: true, sortable: true, cell: (one) => <Feedback pattern={one} /> },
    { key: 'last', title: 'Last', numeric: true, wide: true, sortable: true, cell: (one) => <Time at={one.last_at} /> },
  ];
  return <Table label="Paths between agents" columns={columns} rows={patterns} rowKey={(one) => [one.kind, one.from, one.to, one.query_class].join('\u0000')} sort={sort} onSort={onSort} />;
}

function Success({ pattern: { success_rate, successes, count: all } }: { pattern: Pattern }) {
  return <span className={styles[gradeOf(success_rate)]} title={`${count(successes)} of ${count(all)} ended well`}>{percent(success_rate)}</span>;
}

function Feedback({ pattern: { liked, disliked } }: { pattern: Pattern }) {
  if (liked + disliked === 0) return <span className="faint" title="No feedback yet">–</span>;
  return (
    <span className={styles.feedback}>
      <ThumbsUp size={12} role="img" aria-label="Liked" />{count(liked)}
      <ThumbsDown size={12} role="img" aria-label="Disliked" />{count(disliked)}
    </span>
  );
}
