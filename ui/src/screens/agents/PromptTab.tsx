import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { Schemas } from '@/api/client';
import { Problem, sentence } from '@/api/problem';
import type { AgentDetail } from '@/api/types';
import { Button, ErrorNote, Notice, Skeleton } from '@/design';
import { plural } from '@/lib/format';
import styles from './Agent.module.css';
import { CodeSection, JsonSection } from './CodeSection';
import { PromptForm } from './PromptForm';
import { promptQuery, type PromptInput } from './queries';

/** What the agent's model would get now, to the letter. Nothing is stored and no model is asked. */
export function PromptTab({ agent }: { agent: AgentDetail }) {
  const [input, setInput] = useState<PromptInput>({});
  const { data, error, isFetching, refetch } = useQuery({ ...promptQuery(agent.id, input), enabled: agent.kind === 'local', placeholderData: keepPreviousData });
  if (agent.kind === 'remote') return <Notice>This agent runs on another server, which holds its prompt. Only its description and its card are used here.</Notice>;
  return (
    <div className={styles.column}>
      <PromptForm agent={agent.id} busy={isFetching} onSubmit={setInput} />
      {error ? <ErrorNote title="The prompt could not be made." action={<Button size="small" onClick={() => void refetch()}>Retry</Button>}>{reason(error)}</ErrorNote>
        : !data ? <Skeleton rows={10} /> : (
          <>
            <CodeSection title="System prompt" text={data.system} wrap />
            <Asked asked={data} />
            {data.after_a_round && <section className={styles.column}><h2>After a round of the team</h2><Asked asked={data.after_a_round} /></section>}
          </>
        )}
    </div>
  );
}

/** What is wrong with the input, where the server names it; the general sentence otherwise. */
function reason(error: Error): string {
  const fields = error instanceof Problem ? (error.body.errors as Schemas['FieldErrorBody'][] | undefined) : undefined;
  return fields?.length ? fields.map((field) => sentence(new Error(field.detail))).join(' ') : sentence(error);
}

function Asked({ asked }: { asked: Schemas['AskedView'] }) {
  return (
    <>
      <CodeSection title="Message" text={asked.message} wrap />
      <section className={styles.tools}>
        <h3>{asked.tools.length === 0 ? 'No tools' : plural(asked.tools.length, 'tool')}</h3>
        {asked.tools.map((tool) => (
          <details key={tool.name} className={styles.tool}>
            <summary><code>{tool.name}</code><span className={styles.summaryText}>{tool.description}</span></summary>
            <div className={styles.toolBody}><p className="soft">{tool.description}</p><JsonSection title="Parameters (JSON Schema)" value={tool.parameters} /></div>
          </details>
        ))}
      </section>
    </>
  );
}
