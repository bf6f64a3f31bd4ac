import { useQuery } from '@tanstack/react-query';
import { SearchX } from 'lucide-react';
import { Problem } from '@/api/problem';
import { EmptyState, LinkButton, Page, Skeleton } from '@/design';
import { shortId } from '@/lib/format';
import { runQuery } from '@/run/queries';
import { RunStatus } from '@/run/RunStatus';
import { LoadError } from '@/shell/LoadError';
import { RunActions } from './detail/RunActions';
import { RunBody } from './detail/RunBody';
import { RunFacts } from './detail/RunFacts';

export default function RunScreen({ runId }: { runId: string }) {
  const { data: run, error, refetch } = useQuery(runQuery(runId));
  if (!run && error instanceof Problem && (error.status === 404 || error.status === 400)) return <UnknownRun runId={runId} />;
  return (
    <Page wide title={<>Run <span className="mono" title={runId}>{shortId(runId)}</span></>} lead={run && <RunStatus status={run.status} />} actions={run && <RunActions run={run} />}>
      {error && <LoadError what="the run" error={error} onRetry={() => void refetch()} />}
      {!run && !error && <><Skeleton rows={1} height={104} /><Skeleton rows={6} height={36} /></>}
      {run && <RunFacts run={run} />}
      {run && <RunBody run={run} />}
    </Page>
  );
}

/** The server does not distinguish runs of other users from runs that do not exist. */
function UnknownRun({ runId }: { runId: string }) {
  return (
    <Page title="Run not found">
      <EmptyState icon={SearchX} title="This run does not exist" action={<LinkButton href="/runs">Show all runs</LinkButton>}>
        There is no run <span className="mono">{shortId(runId)}</span>, or it belongs to another user. Seeing those needs the permission <span className="mono">trace:read</span>.
      </EmptyState>
    </Page>
  );
}
