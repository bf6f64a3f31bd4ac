import type { ReactNode } from 'react';
import { Link } from 'wouter';
import type { Schemas } from '@/api/client';
import { sentence } from '@/api/problem';
import type { Roster, System } from '@/api/types';
import { Badge, Card, ErrorNote, Facts, Skeleton, Time } from '@/design';
import { absolute, count, duration } from '@/lib/format';
import { useNow } from '@/lib/useNow';
import styles from './HealthScreen.module.css';

const STORES: Record<string, string> = { sqlite: 'SQLite', postgres: 'PostgreSQL', postgresql: 'PostgreSQL', memory: 'Memory' };

export function ServerCard({ system }: { system: System }) {
  const started = new Date(system.started_at);
  const uptime = Math.max(0, useNow(30_000) - started.getTime());
  return (
    <Card className={styles.server}>
      <Facts rows={[
        ['Version', system.version],
        ['Uptime', <span key="uptime" className="tabular" title={`Since ${absolute(started)}`}>{duration(uptime)}</span>],
        ['Store', <>{STORES[system.store.kind] ?? system.store.kind} <Badge tone={system.store.status === 'ok' ? 'success' : 'danger'}>{system.store.status === 'ok' ? 'OK' : 'Unavailable'}</Badge></>],
        ['Agents', <Link key="agents" href="/agents">{count(system.agents)}</Link>],
        ...(system.active_runs === undefined ? [] : [['Active runs', <Link key="runs" href="/runs?status=running">{count(system.active_runs)}</Link>] satisfies [string, ReactNode]]),
      ]} />
    </Card>
  );
}

export function RosterCard({ roster, error }: { roster: Roster | undefined; error: Error | null }) {
  const errors = roster?.diagnostics.filter((diagnostic) => diagnostic.severity === 'error').length ?? 0;
  return (
    <Card>
      <div className={styles.head}><h2>Agent files</h2>{roster && <Badge tone={roster.status === 'current' ? 'success' : 'warning'}>{roster.status === 'current' ? 'Current' : 'Last good version'}</Badge>}</div>
      {roster ? (
        <Facts rows={[
          ['Loaded', <Time key="loaded" at={roster.loaded_at} />],
          ['Last checked', <Time key="checked" at={roster.checked_at} />],
          ['Errors', errors === 0 ? 'None' : <Link key="errors" href="/agents">{count(errors)}</Link>],
          ['Warnings and notes', roster.diagnostics.length === errors ? 'None' : <Link key="notes" href="/agents">{count(roster.diagnostics.length - errors)}</Link>],
        ]} />
      ) : error ? <ErrorNote>{sentence(error)}</ErrorNote> : <Skeleton rows={2} />}
    </Card>
  );
}

export function ReadinessCard({ readiness, error }: { readiness: Schemas['Health'] | undefined; error: Error | null }) {
  const checks = readiness?.checks;
  return (
    <Card>
      <div className={styles.head}><h2>Readiness</h2>{error ? <Badge tone="danger">Not ready</Badge> : readiness && <Badge tone="success">Ready</Badge>}</div>
      {error ? <ErrorNote>{sentence(error)}</ErrorNote> : checks ? (
        <Facts rows={[
          ['Store', checks.store === 'ok' ? 'OK' : checks.store],
          // A server that requires authentication says no more, because this route needs none.
          ...(checks.agents === undefined ? [] : [['Agents that can be asked', count(checks.agents)] satisfies [string, ReactNode]]),
          ...(checks.runs_at_work === undefined ? [] : [['Runs on this server', count(checks.runs_at_work)] satisfies [string, ReactNode]]),
        ]} />
      ) : <Skeleton rows={2} />}
    </Card>
  );
}
