import { Download } from 'lucide-react';
import type { ReactNode, Ref } from 'react';
import { Button, Table, Tabs, type Column } from '@/design';
import { cost, count } from '@/lib/format';
import { csv } from '@/lib/csv';
import { download, today } from '@/lib/download';
import { CSV_HEADER, csvRow, total, type By, type Line, type Range } from './data';
import styles from './Usage.module.css';

export const BY: { id: By; label: string }[] = [
  { id: 'day', label: 'Day' },
  { id: 'agent', label: 'Agent' },
  { id: 'user', label: 'User' },
  { id: 'model', label: 'Model' },
];

interface UsageTableProps {
  lines: Record<By, Line[]>;
  by: By;
  range: Range;
  onBy: (by: By) => void;
  name: (by: By, key: string) => ReactNode;
  ref?: Ref<HTMLElement>;
}

/** The exact numbers behind the charts. */
export function UsageTable({ lines, by, range, onBy, name, ref }: UsageTableProps) {
  const save = () => download(`baton-usage-by-${by}-${range}-${today()}.csv`, 'text/csv', [csv([by, ...CSV_HEADER], lines[by].map(csvRow))]);
  const content = (one: By) => () => <LinesTable by={one} lines={lines[one]} name={(key) => name(one, key)} />;
  return (
    <section ref={ref} tabIndex={-1} aria-labelledby="usage-table" className={styles.tables}>
      <header className={styles.sectionHeader}>
        <h2 id="usage-table">Exact numbers</h2>
        <Button size="small" icon={Download} onClick={save}>Download CSV</Button>
      </header>
      <Tabs label="Add up by" active={by} onChange={(id) => onBy(id as By)} tabs={BY.map(({ id, label }) => ({ id, label, count: lines[id].length, content: content(id) }))} />
    </section>
  );
}

function LinesTable({ by, lines, name }: { by: By; lines: Line[]; name: (key: string) => ReactNode }) {
  const rows = by === 'day' ? lines.toReversed() : lines;
  const title = BY.find(({ id }) => id === by)?.label ?? '';
  const columns: Column<Line>[] = [
    { key: 'key', title: by === 'day' ? 'Day (UTC)' : title, cell: (line) => (line.key === SUM ? <strong>Total</strong> : name(line.key)) },
    { key: 'cost', title: 'Cost', numeric: true, cell: (line) => <Cost line={line} /> },
    { key: 'input', title: 'Tokens in', numeric: true, cell: ({ usage }) => <Tokens value={usage.input_tokens} isEstimated={usage.estimated} /> },
    { key: 'output', title: 'Tokens out', numeric: true, cell: ({ usage }) => <Tokens value={usage.output_tokens} isEstimated={usage.estimated} /> },
    { key: 'cached', title: 'Cached', numeric: true, wide: true, cell: ({ usage }) => count(usage.cached_tokens) },
    { key: 'written', title: 'Cache writes', numeric: true, wide: true, cell: ({ usage }) => count(usage.cache_write_tokens) },
    { key: 'reasoning', title: 'Reasoning', numeric: true, wide: true, cell: ({ usage }) => count(usage.reasoning_tokens) },
    { key: 'models', title: 'Model calls', numeric: true, wide: true, cell: (line) => count(line.model_calls) },
    { key: 'tools', title: 'Tool calls', numeric: true, wide: true, cell: (line) => count(line.tool_calls) },
    { key: 'runs', title: 'Runs', numeric: true, wide: true, cell: (line) => (line.key === SUM && by !== 'user' ? '' : count(line.runs)) },
  ];
  // A run counts for every agent, model and day that it touched, so only the sum over users is a number of runs.
  return <Table label={`Usage by ${by}`} columns={columns} rows={rows.length > 1 ? [...rows, total(rows, SUM)] : rows} rowKey={(line) => line.key} />;
}

const SUM = '\u0000total';

function Cost({ line: { usage } }: { line: Line }) {
  const text = cost(usage);
  return usage.cost_known ? <span title={`$${usage.cost_usd}`}>{text}</span> : <span className={styles.unknownText} title={text === 'unknown' ? 'No model here has a price' : `At least $${usage.cost_usd}: some models have no price`}>{text}</span>;
}

function Tokens({ value, isEstimated }: { value: number; isEstimated: boolean }) {
  return isEstimated ? <span title="Partly estimated from the text: a provider reported no numbers">≈ {count(value)}</span> : count(value);
}
