import type { Call } from '@/api/types';
import { Badge, Table, type Column } from '@/design';
import { cost, count, duration } from '@/lib/format';
import styles from './StepDetail.module.css';

const TONES = { ok: 'success', failed: 'danger', cancelled: 'neutral' } as const;

type Numbered = Call & { number: number };

/** The attempts of a step, from the ledger. */
export function CallsTable({ calls }: { calls: Call[] }) {
  const isModel = calls[0]?.kind === 'model';
  const columns: (Column<Numbered> | false)[] = [
    calls.length > 1 && { key: 'number', title: 'Attempt', cell: (call) => call.number },
    { key: 'name', title: isModel ? 'Model' : 'Tool', cell: (call) => <span>{call.name}{call.provider && call.provider !== call.name && <span className={styles.provider}>{call.provider}</span>}</span> },
    { key: 'outcome', title: 'Outcome', cell: (call) => <span><Badge tone={TONES[call.outcome]}>{call.outcome}</Badge>{call.error && <> {call.error}</>}</span> },
    { key: 'latency', title: 'Latency', numeric: true, cell: (call) => duration(call.latency_ms) },
    isModel && { key: 'tokens', title: 'In / out', numeric: true, wide: true, cell: ({ usage }) => <span title={`${count(usage.cached_tokens)} cached, ${count(usage.cache_write_tokens)} written to cache, ${count(usage.reasoning_tokens)} reasoning${usage.estimated ? ', estimated' : ''}`}>{count(usage.input_tokens)} / {count(usage.output_tokens)}</span> },
    isModel && { key: 'cost', title: 'Cost', numeric: true, cell: (call) => cost(call.usage) },
  ];
  return <Table label="Calls" columns={columns.filter((column): column is Column<Numbered> => column !== false)} rows={calls.map((call, at) => ({ ...call, number: at + 1 }))} rowKey={(call) => String(call.number)} />;
}
