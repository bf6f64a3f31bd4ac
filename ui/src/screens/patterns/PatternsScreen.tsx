import { useQuery } from '@tanstack/react-query';
import { Waypoints } from 'lucide-react';
import { useMemo } from 'react';
import { useAgents } from '@/api/useAgents';
import { Button, Card, EmptyState, FilterChips, Page, SelectField, Skeleton, type FilterChip } from '@/design';
import { plural } from '@/lib/format';
import { LoadError } from '@/shell/LoadError';
import { useSearchState } from '@/lib/useSearchState';
import { agentsIn, filtered, KINDS, nextSort, patternsQuery, percent, sorted, sortOf, type Kind, type Pattern } from './data';
import { links } from './flow';
import { FlowDiagram } from './FlowDiagram';
import { Insights } from './Insights';
import { StartLink } from '@/shell/StartLink';
import styles from './Patterns.module.css';
import { PatternsTable } from './PatternsTable';

export default function PatternsScreen() {
  const { data: learnt, error, refetch } = useQuery(patternsQuery());
  return (
    <Page title="Patterns" lead="Paths that conversations take between agents, with their success rates.">
      {error ? <LoadError what="patterns" error={error} onRetry={() => void refetch()} />
        : !learnt ? <><Card><Skeleton rows={1} height={240} /></Card><Skeleton rows={6} height={32} /></>
        : learnt.data.length === 0 ? <Nothing />
        : <><Insights insights={learnt.insights} /><Report patterns={learnt.data} /></>}
    </Page>
  );
}

function Report({ patterns }: { patterns: Pattern[] }) {
  const [params, change] = useSearchState();
  const filter = { kind: params.get('kind') ?? undefined, agent: params.get('agent') ?? undefined };
  const { kind, agent } = filter;
  const sort = sortOf(params.get('sort'));
  const { face } = useAgents();
  const shown = useMemo(() => filtered(patterns, { kind, agent }), [patterns, kind, agent]);
  const paths = useMemo(() => links(shown), [shown]);
  const agents = useMemo(() => agentsIn(patterns), [patterns]);
  const clear = () => change({ kind: undefined, agent: undefined });
  const chips: FilterChip[] = [
    ...(kind ? [{ key: 'kind', name: 'Kind', value: KINDS[kind as Kind]?.label ?? kind, onRemove: () => change({ kind: undefined }) }] : []),
    ...(agent ? [{ key: 'agent', name: 'Agent', value: face(agent).name, onRemove: () => change({ agent: undefined }) }] : []),
  ];
  return (
    <>
      <div className={styles.filters}>
        <SelectField label="Kind" hideLabel value={kind ?? ''} onChange={(event) => change({ kind: event.target.value })}>
          <option value="">All kinds</option>
          {Object.entries(KINDS).map(([value, { label }]) => <option key={value} value={value}>{label}</option>)}
        </SelectField>
        <SelectField label="Agent" hideLabel value={agent ?? ''} onChange={(event) => change({ agent: event.target.value })}>
          <option value="">All agents</option>
          {agents.map((id) => <option key={id} value={id}>{face(id).name}</option>)}
        </SelectField>
        <Summary patterns={shown} paths={paths.length} />
      </div>
      <FilterChips chips={chips} onClear={clear} />
      {shown.length === 0 ? <EmptyState icon={Waypoints} title="No path matches these filters" action={<Button onClick={clear}>Clear filters</Button>} /> : (
        <>
          <Card><h2 className="visually-hidden">Diagram</h2><FlowDiagram links={paths} /></Card>
          <h2 className="visually-hidden">Table</h2>
          <PatternsTable patterns={sorted(shown, sort)} sort={sort} onSort={(key) => change({ sort: nextSort(sort, key) })} onAgent={(id) => change({ agent: id })} />
        </>
      )}
    </>
  );
}

function Summary({ patterns, paths }: { patterns: Pattern[]; paths: number }) {
  const all = patterns.reduce((sum, one) => sum + one.count, 0);
  const successes = patterns.reduce((sum, one) => sum + one.successes, 0);
  if (all === 0) return null;
  return <p className={styles.summary}>{plural(all, 'handoff')} on {plural(paths, 'path')}, {percent(successes / all)} successful</p>;
}

function Nothing() {
  return (
    <EmptyState icon={Waypoints} title="No handoffs between agents yet" action={<StartLink />}>
      Handoffs, transfers, routes and chains are counted here with their success rate, duration, cost and ratings.
    </EmptyState>
  );
}
