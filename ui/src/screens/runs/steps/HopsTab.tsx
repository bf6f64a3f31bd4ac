import { ArrowRight, CircleCheck, CircleSlash, CircleX, Route } from 'lucide-react';
import type { Hop } from '@/api/types';
import { Badge, EmptyState, Table, Time, type Column } from '@/design';
import { dollars, duration } from '@/lib/format';
import type { StepsState } from '../detail/useSteps';
import { Agent } from '../Agent';
import styles from './HopsTab.module.css';
import { StepsGate } from './StepsGate';

const columns: Column<Hop>[] = [
  { key: 'kind', title: 'Kind', cell: (hop) => <Badge>{hop.kind}</Badge> },
  { key: 'way', title: 'From → to', cell: (hop) => <span className={styles.way}><Agent id={hop.from} /><ArrowRight size={13} role="img" aria-label="to" className={styles.arrow} /><Agent id={hop.to} /></span> },
  { key: 'reason', title: 'Reason', wide: true, cell: (hop) => <span className={styles.reason} dir="auto">{hop.reason || '–'}</span> },
  { key: 'outcome', title: 'Outcome', cell: (hop) => <Outcome hop={hop} /> },
  { key: 'latency', title: 'Latency', numeric: true, cell: (hop) => duration(hop.latency_ms) },
  { key: 'cost', title: 'Cost', hint: 'Known cost of all calls below it', numeric: true, wide: true, cell: (hop) => (hop.cost_usd > 0 ? dollars(hop.cost_usd) : <span className="faint">–</span>) },
  { key: 'at', title: 'When', wide: true, cell: (hop) => <span className={styles.when}><Time at={hop.at} /></span> },
];

export function HopsTab({ steps }: { steps: StepsState }) {
  return (
    <StepsGate steps={steps} what="hops">
      {({ hops }) => (hops.length === 0
        ? <EmptyState icon={Route} title="No hops">The agent that was asked answered itself. Delegations, advice, teams, chains, routes, transfers and handoffs appear here.</EmptyState>
        : <Table label="Hops" columns={columns} rows={hops} rowKey={(hop) => hop.hop_id} />)}
    </StepsGate>
  );
}

const LABELS: Record<string, string> = { completed: 'Completed', cancelled: 'Cancelled', failed: 'Failed', declined: 'Declined' };

function Outcome({ hop: { outcome, success } }: { hop: Hop }) {
  if (!outcome) return <span className="faint">Open</span>;
  const Icon = success ? CircleCheck : outcome === 'cancelled' ? CircleSlash : CircleX;
  return <span className={success ? styles.ok : styles.failed}><Icon size={14} aria-hidden />{LABELS[outcome] ?? outcome}</span>;
}
