import { useQuery } from '@tanstack/react-query';
import { useAgents } from '@/api/useAgents';
import { SelectField } from '@/design';
import { relative, shortId } from '@/lib/format';
import { useNow } from '@/lib/useNow';
import styles from './Graph.module.css';
import { latestRunsQuery } from './queries';

/** Chooses the run whose path is shown; the latest ones, and the chosen one if it is older. */
export function RunPicker({ runId, onChange }: { runId: string | undefined; onChange: (runId: string | undefined) => void }) {
  const { data: runs = [], error } = useQuery(latestRunsQuery());
  const { face } = useAgents();
  const now = useNow(30_000);
  if (error && !runId) return null;
  return (
    <SelectField className={styles.picker} label="Path of a run" value={runId ?? ''} onChange={(event) => onChange(event.target.value || undefined)}>
      <option value="">No run</option>
      {runId && !runs.some((run) => run.run_id === runId) && <option value={runId}>Run {shortId(runId)}</option>}
      {runs.map((run) => <option key={run.run_id} value={run.run_id}>{face(run.agent).name}, {run.status}, {relative(new Date(run.created_at), now)}</option>)}
    </SelectField>
  );
}
