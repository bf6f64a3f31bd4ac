import { CircleCheck, TriangleAlert } from 'lucide-react';
import { useRoster } from '@/api/useRoster';
import { Skeleton, Time } from '@/design';
import { plural } from '@/lib/format';
import { LoadError } from '@/shell/LoadError';
import { DiagnosticList } from './DiagnosticList';
import styles from './Roster.module.css';

/** Whether the agents on disk are the ones that run, and if not, why. */
export function RosterStatus() {
  const { data: roster, error, refetch } = useRoster();
  if (error && !roster) return <LoadError what="the state of the agent files" error={error} onRetry={() => void refetch()} />;
  if (!roster) return <Skeleton rows={1} height={20} />;
  const agents = plural(roster.agents, 'agent');
  if (roster.status === 'last_good') {
    return (
      <section className={styles.rejected} aria-labelledby="rejected-files">
        <header className={styles.rejectedHeader}>
          <TriangleAlert size={18} aria-hidden className={styles.warningIcon} />
          <div>
            <h2 id="rejected-files" role="status">The last good version is active</h2>
            <p className="soft">The changed agent files have errors, so they were not loaded. {agents} from <Time at={roster.loaded_at} /> keep running. Fix the files; they are checked again when they change.</p>
          </div>
        </header>
        <DiagnosticList diagnostics={roster.diagnostics} />
      </section>
    );
  }
  return (
    <div className={styles.current}>
      <p className={styles.currentLine} role="status">
        <CircleCheck size={16} aria-hidden className={styles.okIcon} />
        <strong>Current</strong><span aria-hidden>·</span>{agents}<span aria-hidden>·</span><span className="soft">loaded <Time at={roster.loaded_at} /></span>
      </p>
      {roster.diagnostics.length > 0 && (
        <details className={styles.findings}>
          <summary>{plural(roster.diagnostics.length, 'finding')} in the agent files</summary>
          <DiagnosticList diagnostics={roster.diagnostics} />
        </details>
      )}
    </div>
  );
}
