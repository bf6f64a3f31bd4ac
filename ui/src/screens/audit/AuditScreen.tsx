import { useInfiniteQuery, useMutation } from '@tanstack/react-query';
import { Download, ScrollText, ShieldCheck } from 'lucide-react';
import { useMemo } from 'react';
import { api, data } from '@/api/client';
import { Button, EmptyState, Page, Skeleton } from '@/design';
import { plural } from '@/lib/format';
import { LoadError } from '@/shell/LoadError';
import { useSearchState } from '@/lib/useSearchState';
import styles from './Audit.module.css';
import { AuditFilters } from './AuditFilters';
import { AuditTable } from './AuditTable';
import { auditQuery, periodOf, sinceOf, type Filter } from './data';
import { ExportStatus } from './ExportStatus';
import { Integrity } from './Integrity';
import { useExport } from './useExport';

export default function AuditScreen() {
  const [params, change] = useSearchState();
  const filter = useFilter(params);
  const trail = useInfiniteQuery(auditQuery(filter));
  const verify = useMutation({ mutationFn: () => data(api.GET('/api/v1/audit/verify', { params: { query: { full: true } } })) });
  const saving = useExport(filter);
  const entries = useMemo(() => trail.data?.pages.flatMap((page) => page.data) ?? [], [trail.data]);
  const actors = useMemo(() => [...new Set(entries.map((entry) => entry.actor))].sort(), [entries]);
  const isSaving = saving.state?.phase === 'running';

  const actions = trail.isError ? undefined : (
    <>
      <Button icon={ShieldCheck} busy={verify.isPending} onClick={() => verify.mutate()}>Verify integrity</Button>
      <Button icon={Download} disabled={isSaving} onClick={() => saving.start('jsonl')}>Export JSONL</Button>
      <Button icon={Download} disabled={isSaving} onClick={() => saving.start('csv')}>Export CSV</Button>
    </>
  );
  return (
    <Page title="Audit" lead="Who did what, for whom, and how it was decided." actions={actions}>
      <div aria-live="polite" className={styles.notes}>
        <Integrity verdict={verify.data} error={verify.error} onDismiss={verify.reset} />
        <ExportStatus state={saving.state} onDismiss={saving.dismiss} />
      </div>
      {trail.isError ? <LoadError what="the audit trail" error={trail.error} onRetry={() => void trail.refetch()} /> : (
        <>
          <AuditFilters params={params} onChange={change} actors={actors} />
          {trail.isPending ? <Skeleton rows={8} height={32} />
            : entries.length === 0 ? <Nothing isAll={periodOf(params.get('since')) === 'all' && !filter.actor && !filter.action && !filter.thread_id} onAll={() => change({ since: 'all', actor: undefined, action: undefined, thread_id: undefined })} />
            : <AuditTable entries={entries} onFilter={(name, value) => change({ [name]: value })} />}
          {entries.length > 0 && (
            <footer className={styles.footer}>
              <span className="faint tabular">{plural(entries.length, 'entry', 'entries')}, the newest first</span>
              {trail.hasNextPage && <Button busy={trail.isFetchingNextPage} onClick={() => void trail.fetchNextPage()}>Load more</Button>}
            </footer>
          )}
        </>
      )}
    </Page>
  );
}

/** The filter of the address. A period is fixed to a moment once, so that all pages ask for the same. */
function useFilter(params: URLSearchParams): Filter {
  const [since, actor, action, thread_id] = ['since', 'actor', 'action', 'thread_id'].map((name) => params.get(name));
  return useMemo(() => ({ since: sinceOf(since ?? null, Date.now()), actor: actor ?? undefined, action: action ?? undefined, thread_id: thread_id ?? undefined }), [since, actor, action, thread_id]);
}

function Nothing({ isAll, onAll }: { isAll: boolean; onAll: () => void }) {
  return (
    <EmptyState icon={ScrollText} title={isAll ? 'No entries yet' : 'No matching entries'} action={isAll ? undefined : <Button onClick={onAll}>Show all entries</Button>}>
      Messages, runs, handoffs, tool calls, approvals and deletions are recorded here with who asked for them and whether they were allowed.
    </EmptyState>
  );
}
