import { Card, Facts } from '@/design';
import type { AgentDetail } from '@/api/types';
import { count } from '@/lib/format';
import styles from './Agent.module.css';
import { definitionOf, facts, guardFacts, inline, type Definition } from './definition';
import { Relations } from './Relations';
import { WorkflowSteps } from './WorkflowSteps';

export function OverviewTab({ agent }: { agent: AgentDetail }) {
  const definition = definitionOf(agent);
  const states = definition.workflow?.states ?? [];
  return (
    <div className={styles.columns}>
      <div className={styles.column}>
        {states.length > 0 && <Card><h2 className={styles.heading}>Workflow</h2><WorkflowSteps states={states} /></Card>}
        <Relations id={agent.id} />
        {definition.accepts_handoff && <HandoffCard handoff={definition.accepts_handoff} examples={agent.trigger_examples ?? []} />}
      </div>
      <div className={styles.column}>
        <FactCard title="Model" rows={modelFacts(agent, definition)} />
        <FactCard title="Limits" rows={facts(definition.limits)} />
        <FactCard title="Guardrails" rows={guardFacts(definition.guardrails)} />
        {(definition.agents?.length ?? 0) > 0 && <FactCard title="Delegation" rows={facts(definition.delegation)} />}
        {(definition.advisors?.agents?.length ?? 0) > 0 && <FactCard title="Advisors" rows={facts({ ...definition.advisors, agents: definition.advisors?.agents?.length })} />}
        {definition.router && <FactCard title="Router" rows={facts(definition.router)} />}
        {definition.team && <FactCard title="Team" rows={facts(definition.team)} />}
      </div>
    </div>
  );
}

function modelFacts(agent: AgentDetail, definition: Definition): [string, string][] {
  const rows: [string, string][] = [['Model', agent.model.length > 0 ? agent.model.join(', then ') : 'Default model']];
  if (definition.temperature !== undefined) rows.push(['Temperature', inline(definition.temperature)]);
  if (definition.top_p !== undefined) rows.push(['Top p', inline(definition.top_p)]);
  if (definition.max_output_tokens !== undefined) rows.push(['Max output tokens', count(definition.max_output_tokens)]);
  if (definition.effort) rows.push(['Effort', definition.effort]);
  if (definition.planning_strategy) rows.push(['Planning', inline(definition.planning_strategy)]);
  if (definition.grounding) rows.push(['Grounding', inline(definition.grounding)]);
  if (definition.input_schema !== undefined) rows.push(['Input', 'JSON of a schema']);
  if (definition.output_schema !== undefined) rows.push(['Answer', 'JSON of a schema']);
  if (definition.visible !== undefined) rows.push(['Visible to users', definition.visible ? 'Yes' : 'No']);
  const again = (definition.collaborations ?? []).filter((one) => one.allow_revisit);
  if (again.length > 0) rows.push(['May transfer back', again.map((one) => `${one.agent} (${one.allow_revisit}×)`).join(', ')]);
  if (definition.card?.url) rows.push(['Agent card', definition.card.url]);
  rows.push(['Usable by other agents', agent.can_be_orchestrated ? 'Yes' : 'No']);
  return rows;
}

function FactCard({ title, rows }: { title: string; rows: [string, string][] }) {
  if (rows.length === 0) return null;
  return <Card className={styles.sideFacts}><h2 className={styles.heading}>{title}</h2><Facts rows={rows} /></Card>;
}

function HandoffCard({ handoff, examples }: { handoff: NonNullable<Definition['accepts_handoff']>; examples: string[] }) {
  const { triggers = [], exit_words = [], ...rest } = handoff;
  const shown = triggers.length > 0 ? triggers : examples;
  return (
    <Card>
      <h2 className={styles.heading}>Handoff</h2>
      <Facts rows={facts(rest)} />
      {shown.length > 0 && <Phrases title="Starts when people say" phrases={shown} />}
      {exit_words.length > 0 && <Phrases title="Ends when people say" phrases={exit_words} />}
    </Card>
  );
}

function Phrases({ title, phrases }: { title: string; phrases: string[] }) {
  return (
    <div className={styles.phrases}>
      <h3>{title}</h3>
      <ul className={styles.chips}>{phrases.map((phrase) => <li key={phrase} className={styles.chip} dir="auto">“{phrase}”</li>)}</ul>
    </div>
  );
}
