import { MessageCircleOff } from 'lucide-react';
import type { RunDetail } from '@/api/types';
import { Card, CopyButton, EmptyState } from '@/design';
import { isOver } from '@/run/status';
import { Agent } from '../Agent';
import styles from './AnswerTab.module.css';
import { Results } from './Results';
import { Text } from './Text';

/** The answer of the run, and the agents that contributed to it. */
export function AnswerTab({ run }: { run: RunDetail }) {
  const contributors = [...new Set(run.sources.map((source) => source.agent))];
  return (
    <div className={styles.answer}>
      {run.answer ? (
        <Card>
          <header className={styles.header}><Agent id={run.answered_by ?? run.agent} strong /><CopyButton text={run.answer} label="Copy the answer" /></header>
          <Text text={run.answer} />
        </Card>
      ) : (
        <EmptyState icon={MessageCircleOff} title={isOver(run.status) ? 'There is no answer' : 'No answer yet'}>{run.error?.message ?? (isOver(run.status) ? 'This run ended without an answer.' : 'It appears here when the run is done.')}</EmptyState>
      )}
      {run.value !== undefined && run.value !== null && <Section title="Value"><pre className={styles.json}>{JSON.stringify(run.value, null, 2)}</pre></Section>}
      {contributors.length > 0 && <Section title="Sources"><p className={styles.hint}>These agents contributed behind the scenes.</p><div className={styles.sources}>{contributors.map((agent) => <Agent key={agent} id={agent} />)}</div></Section>}
      {run.dissent.length > 0 && (
        <Section title="Dissent">
          {run.dissent.map(({ member, reason }, at) => <div key={at} className={styles.dissent}><Agent id={member} /><p dir="auto">{reason}</p></div>)}
        </Section>
      )}
      {run.results.length > 0 && <Section title={`Results of sub-agents (${run.results.length})`}><Results results={run.results} /></Section>}
    </div>
  );
}

function Section({ title, children }: { title: string; children: React.ReactNode }) {
  return <section className={styles.section}><h2>{title}</h2>{children}</section>;
}
