import type { Schemas } from '@/api/client';
import { useAgents } from '@/api/useAgents';
import { Elapsed } from '@/design';
import styles from './Panel.module.css';
import type { Visit } from './path';

const STAGES: Record<string, string> = { advisors: 'Asks its advisors', team: 'Leads the team', session: 'Works itself', route: 'Routes to one of', handoff: 'Ends with' };

/** What happens when this agent is asked. */
export function Stages({ stages }: { stages: Schemas['StageBody'][] }) {
  const { face } = useAgents();
  return (
    <ol className={styles.stages}>
      {stages.map(({ stage, agents = [] }, at) => <li key={at}>{STAGES[stage] ?? stage}{stage !== 'session' && agents.length > 0 && <span className="soft">: {agents.map((id) => face(id).name).join(', ')}</span>}</li>)}
    </ol>
  );
}

/** The parts of this agent in the run that is shown. */
export function Visits({ visits }: { visits: { visit: Visit; step: number }[] }) {
  return (
    <ul className={styles.visits}>
      {visits.map(({ visit, step }) => (
        <li key={visit.path} data-failed={visit.status === 'failed' || undefined}>
          <p><strong>Step {step}</strong> <span className="soft">{visit.status}, <Elapsed since={visit.startedAt} until={visit.finishedAt} /></span></p>
          {visit.why && <p className={styles.why} dir="auto">{visit.why}</p>}
          {visit.error && <p className={styles.error}>{visit.error}</p>}
        </li>
      ))}
    </ul>
  );
}
