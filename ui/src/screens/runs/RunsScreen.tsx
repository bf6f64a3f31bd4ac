import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { Activity, Link2, RefreshCw, SearchX } from 'lucide-react';
import { useCallback } from 'react';
import { useAgents } from '@/api/useAgents';
import { useMay } from '@/api/useMay';
import { Button, CopyTextButton, EmptyState, Page, Skeleton } from '@/design';
import { count, plural, shortId } from '@/lib/format';
import { StartLink } from '@/shell/StartLink';
import { LoadError } from '@/shell/LoadError';
import { FilterBar } from './list/FilterBar';
import { matches, NO_FILTERS } from './list/filters';
import { RunsTable } from './list/RunsTable';
import tableStyles from './list/RunsTable.module.css';
import { useFilters } from './list/useFilters';
import { runQueries } from './queries';

export default function RunsScreen() {
  const [filters, change] = useFilters();
  const may = useMay();
  const { face } = useAgents();
  const runs = useInfiniteQuery(runQueries.list(filters));
  const titles = useQuery(runQueries.titles());
  const titleOf = useCallback((threadId: string) => titles.data?.get(threadId) || shortId(threadId), [titles.data]);

  const loaded = runs.data?.pages.flatMap((page) => page.data) ?? [];
  const shown = loaded.filter((run) => matches(run, filters, titles.data?.get(run.thread_id), [face(run.agent).name, face(run.answered_by ?? run.agent).name]));
  const isFiltered = Object.values(filters).some(Boolean);
  const clear = () => change(NO_FILTERS);

  const more = runs.hasNextPage && <Button size="small" busy={runs.isFetchingNextPage} onClick={() => void runs.fetchNextPage()}>Load more</Button>;
  const summary = shown.length === loaded.length ? plural(loaded.length, 'run') : `${count(shown.length)} of ${count(loaded.length)} loaded runs`;
  return (
    <Page
      wide
      title="Runs"
      lead="The work for each message: who answered, how long it took and what it cost."
      actions={
        <>
          <Button icon={RefreshCw} busy={runs.isRefetching && !runs.isFetchingNextPage} onClick={() => void runs.refetch()}>Refresh</Button>
          <CopyTextButton icon={Link2} label="Copy link" text={() => location.href} />
        </>
      }
    >
      <FilterBar filters={filters} change={change} mayFilterUsers={may('trace:read')} titleOf={titleOf} />
      {runs.isError && <LoadError what="the runs" error={runs.error} onRetry={() => void runs.refetch()} />}
      {runs.isPending && <Skeleton rows={8} height={32} />}
      {shown.length > 0 && (
        <RunsTable runs={shown} titleOf={titleOf} onThread={(thread) => change({ thread })} footer={<div className={tableStyles.more}><span className="tabular">{summary}</span>{more}</div>} />
      )}
      {runs.isSuccess && shown.length === 0 && isFiltered && (
        <EmptyState icon={SearchX} title="No runs match" action={<div className={tableStyles.more}>{more}<Button onClick={clear}>Clear filters</Button></div>}>
          {loaded.length > 0 ? `None of the ${count(loaded.length)} loaded runs match.` : 'Try another status, agent or period.'}
        </EmptyState>
      )}
      {runs.isSuccess && shown.length === 0 && !isFiltered && (
        <EmptyState icon={Activity} title="No runs yet" action={<StartLink />}>Every message starts a run. It appears here with its agents, time, tokens and cost.</EmptyState>
      )}
    </Page>
  );
}
