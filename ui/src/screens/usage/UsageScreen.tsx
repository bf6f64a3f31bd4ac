import { useQueries } from '@tanstack/react-query';
import { ChartNoAxesColumn, User } from 'lucide-react';
import { useMemo, useRef } from 'react';
import { Link } from 'wouter';
import { useAgents } from '@/api/useAgents';
import { AgentBadge, Button, Card, EmptyState, FilterChips, Page, Segmented } from '@/design';
import { LoadError } from '@/shell/LoadError';
import { useSearchState } from '@/lib/useSearchState';
import { StartLink } from '@/shell/StartLink';
import { Breakdown } from './Breakdown';
import { Budgets } from './Budgets';
import { DayChart } from './DayChart';
import { defaultMeasure, RANGES, sinceOf, total, usageQuery, type By, type Line, type Measure, type Range } from './data';
import { buckets, unitOf } from './days';
import { Loading } from './Loading';
import { Tiles } from './Tiles';
import styles from './Usage.module.css';
import { BY, UsageTable } from './UsageTable';

export default function UsageScreen() {
  const [params, change] = useSearchState();
  const range = RANGES.find(({ value }) => value === params.get('range'))?.value ?? '7d';
  const user = params.get('user') ?? undefined;
  const queries = useQueries({ queries: BY.map(({ id }) => usageQuery(id, range, user)) });
  const failed = queries.find((query) => query.isError);
  const all = queries.every((query) => query.data);
  const lines = Object.fromEntries(BY.map(({ id }, at) => [id, queries[at]?.data?.data ?? []])) as Record<By, Line[]>;
  const budgets = queries[0]?.data?.budgets ?? [];
  const retry = () => queries.forEach((query) => void query.refetch());

  return (
    <Page title="Usage" lead="Tokens and cost by day, agent, user and model. Days are in UTC." actions={!failed && <Segmented label="Range" options={RANGES} value={range} onChange={(value: Range) => change({ range: value })} />}>
      {user && <FilterChips chips={[{ key: 'user', name: 'User', value: user, onRemove: () => change({ user: undefined }) }]} />}
      {!failed && budgets.length > 0 && <Budgets budgets={budgets} />}
      {failed ? <LoadError what="usage" error={failed.error} onRetry={retry} />
        : !all ? <Loading />
        : lines.user.length === 0 ? <Nothing range={range} onAll={() => change({ range: 'all', user: undefined })} />
        : <Report lines={lines} range={range} params={params} change={change} />}
    </Page>
  );
}

interface ReportProps { lines: Record<By, Line[]>; range: Range; params: URLSearchParams; change: (changes: Record<string, string | undefined>) => void }

function Report({ lines, range, params, change }: ReportProps) {
  const table = useRef<HTMLElement>(null);
  const name = useNames((user) => change({ user }));
  // One run belongs to one user, so these sums count every run once.
  const sum = useMemo(() => total(lines.user), [lines.user]);
  const days = useMemo(() => buckets(lines.day, sinceOf(range, Date.now()), Date.now()), [lines.day, range]);
  const chosen = params.get('measure');
  const measure: Measure = chosen === 'cost' || chosen === 'tokens' ? chosen : defaultMeasure(sum);
  const by = BY.find(({ id }) => id === params.get('by'))?.id ?? 'day';
  const showTable = (next: By) => {
    change({ by: next });
    table.current?.focus();
  };
  return (
    <>
      <Tiles sum={sum} />
      <Card className={styles.chart}>
        <header className={styles.sectionHeader}>
          <h2>{measure === 'cost' ? 'Cost' : 'Tokens'} by {unitOf(days)}</h2>
          <Segmented label="Show" options={MEASURES} value={measure} onChange={(value) => change({ measure: value })} />
        </header>
        <DayChart buckets={days} measure={measure} />
        {measure === 'cost' && !sum.usage.cost_known && <p className={styles.key}><span className={styles.hatched} aria-hidden />Hatched: models without a known price. They are not counted as zero.</p>}
      </Card>
      <div className={styles.breakdowns}>
        {BY.slice(1).map(({ id, label }) => (
          <Breakdown key={id} title={`By ${label.toLowerCase()}`} lines={lines[id]} measure={measure} name={(key) => name(id, key)} onShowTable={() => showTable(id)} />
        ))}
      </div>
      <UsageTable ref={table} lines={lines} by={by} range={range} onBy={(next) => change({ by: next })} name={name} />
    </>
  );
}

const MEASURES: { value: Measure; label: string }[] = [{ value: 'cost', label: 'Cost' }, { value: 'tokens', label: 'Tokens' }];

/** Agents by their badge, users as a filter, models in monospace. */
function useNames(onUser: (user: string) => void) {
  const { face } = useAgents();
  return (by: By, key: string) => {
    switch (by) {
      case 'agent': return <Link href={`/agents/${encodeURIComponent(key)}`} className={styles.link}><AgentBadge {...face(key)} /></Link>;
      case 'user': return <button type="button" className={styles.user} title="Only this user" onClick={() => onUser(key)}><User size={14} aria-hidden /><span className="truncate" dir="auto">{key}</span></button>;
      case 'model': return <code className={styles.model} title={key}>{key}</code>;
      case 'day': return <span className="tabular">{key}</span>;
    }
  };
}

function Nothing({ range, onAll }: { range: Range; onAll: () => void }) {
  const action = range === 'all' ? <StartLink /> : <Button onClick={onAll}>Show all time</Button>;
  return <EmptyState icon={ChartNoAxesColumn} title={range === 'all' ? 'No usage yet' : 'No usage in this period'} action={action}>Every call to a model is counted here with its tokens and its price, by agent, user and model.</EmptyState>;
}
