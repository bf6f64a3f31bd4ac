import { ArrowRight, CircleCheck, CircleX, Route } from 'lucide-react';
import type { Hop } from '@/api/types';
import { Badge, EmptyState, Table, Time, type Column } from '@/design';
import { duration } from '@/lib/format';
import type { StepsState } from '../detail/useSteps';
import { Agent } from '../Agent';
import styles from './HopsTab.module.css';
import { StepsGate } from './StepsGate';

const columns: Column<Hop>[] = [
  { key: 'kind', title: 'Kind', cell: (hop) => <Badge>{hop.kind}</Badge> },
  { key: 'way', title: 'From → to', cell: (hop) => <span className={styles.way}><Agent id={hop.from} /><ArrowRight size={13} role="img" aria-label="to" className={styles.arrow} /><Agent id={hop.to} /></span> },
  { key: 'reason', title: 'Reason', wide: true, cell: (hop) => <span className={styles.reason} dir="auto">{hop.reason || '–'}</span> },
  { key: 'success', title: 'Result', cell: (hop) => <Result isSuccess={hop.success} /> },
  { key: 'latency', title: 'Latency', numeric: true, cell: (hop) => duration(hop.latency_ms) },
  { key: 'at', title: 'When', wide: true, cell: (hop) => <span className={styles.when}><Time at={hop.at} /></span> },
];

export function HopsTab({ steps }: { steps: StepsState }) {
  return (
    <StepsGate steps={steps} what="hops">
      {({ hops }) => (hops.length === 0
        ? <EmptyState icon={Route} title="No hops">The agent that was asked answered itself. Handoffs, transfers and routes to other agents appear here.</EmptyState>
        : <Table label="Hops" columns={columns} rows={hops} rowKey={(hop) => hop.hop_id} />)}
    </StepsGate>
  );
}

function Result({ isSuccess }: { isSuccess: boolean }) {
  const Icon = isSuccess ? CircleCheck : CircleX;
  return <span className={isSuccess ? styles.ok : styles.failed}><Icon size={14} aria-hidden />{isSuccess ? 'OK' : 'Failed'}</span>;
}
