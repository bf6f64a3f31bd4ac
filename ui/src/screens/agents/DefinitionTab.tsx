import { useState } from 'react';
import type { AgentDetail } from '@/api/types';
import { Button, CopyButton, Table } from '@/design';
import styles from './Agent.module.css';
import { CodeSection, JsonSection } from './CodeSection';
import { inline } from './definition';

/** Every key with the value that is in force, defaults included. */
export function DefinitionTab({ agent }: { agent: AgentDetail }) {
  const [asJson, setAsJson] = useState(false);
  const definition = agent.definition as Record<string, unknown>;
  const { prompt, ...rest } = definition;
  const json = () => JSON.stringify(definition, null, 2);
  return (
    <div className={styles.column}>
      <div className={styles.bar}>
        <p className="soft">Every key of the agent file with its value or its default. What could be a secret is masked.</p>
        <span className={styles.barActions}>
          <Button size="small" aria-pressed={asJson} onClick={() => setAsJson(!asJson)}>{asJson ? 'Show as table' : 'Show as JSON'}</Button>
          <CopyButton text={json} label="Copy as JSON" />
        </span>
      </div>
      {asJson ? <JsonSection title="Definition" value={definition} /> : (
        <>
          <Table label="Definition" rows={Object.entries(rest)} rowKey={([key]) => key} columns={[
            { key: 'key', title: 'Key', cell: ([key]) => <code className={styles.key}>{key}</code> },
            { key: 'value', title: 'Value', cell: ([, value]) => <Value value={value} /> },
          ]} />
          {typeof prompt === 'string' && <CodeSection title="prompt" text={prompt} wrap />}
        </>
      )}
    </div>
  );
}

function Value({ value }: { value: unknown }) {
  const isMap = typeof value === 'object' && value !== null && !Array.isArray(value);
  const isDeep = Array.isArray(value) && value.some((entry) => typeof entry === 'object');
  if (!isMap && !isDeep) return <span dir="auto">{inline(value)}</span>;
  if (isMap && Object.keys(value).length === 0) return <span className="faint">none</span>;
  return <pre className={styles.json}>{JSON.stringify(value, null, 2)}</pre>;
}
