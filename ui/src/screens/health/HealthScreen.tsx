import { useQuery } from '@tanstack/react-query';
import { RefreshCw } from 'lucide-react';
import { Problem, sentence } from '@/api/problem';
import { Button, ErrorNote, Page, Skeleton, Time } from '@/design';
import { Forbidden, isForbidden } from '@/shell/Forbidden';
import styles from './HealthScreen.module.css';
import { McpServers } from './McpServers';
import { ModelCard } from './ModelCard';
import { healthQueries } from './queries';
import { ReadinessCard, RosterCard, ServerCard } from './StateCards';
import { verdictOf } from './verdict';
import { VerdictCard } from './VerdictCard';

export default function HealthScreen() {
  const system = useQuery(healthQueries.system());
  const roster = useQuery(healthQueries.roster());
  const readiness = useQuery(healthQueries.readiness());
  const refresh = () => void Promise.all([system.refetch(), roster.refetch(), readiness.refetch()]);
  const isUnreachable = system.error !== null && !(system.error instanceof Problem);
  const actions = (
    <>
      {system.dataUpdatedAt > 0 && <span className="faint">Updated <Time at={system.dataUpdatedAt} /></span>}
      <Button icon={RefreshCw} size="small" busy={system.isFetching && !system.isPending} onClick={refresh}>Refresh</Button>
    </>
  );
  return (
    <Page title="Health" lead="Status of this server, its store, models and MCP servers. Refreshes every 10 seconds." actions={actions}>
      {isForbidden(system.error) ? <Forbidden error={system.error} permission="agent:read" /> : (
        <>
          {system.error && (
            <ErrorNote action={<Button size="small" onClick={refresh}>Retry</Button>}>
              {sentence(system.error)}{system.data && ' The last known state is shown below.'}
            </ErrorNote>
          )}
          {system.isPending && <Skeleton rows={6} height={64} />}
          {system.data && (
            <>
              {!isUnreachable && <VerdictCard verdict={verdictOf({ system: system.data, roster: roster.data, readinessError: readiness.error })} />}
              <ServerCard system={system.data} />
              <ModelCard system={system.data} />
              <McpServers servers={system.data.mcp_servers} />
              <div className={styles.pair}>
                <RosterCard roster={roster.data} error={roster.error} />
                <ReadinessCard readiness={readiness.data} error={readiness.error} />
              </div>
            </>
          )}
        </>
      )}
    </Page>
  );
}
