import type { RunDetail, Step, Steps } from '@/api/types';
import { Badge, CopyButton, Time } from '@/design';
import { Agent } from '../Agent';
import { CallsTable } from './CallsTable';
import { pretty, stepTitle, textOf, toolOf } from './decode';
import styles from './StepDetail.module.css';
import { Block } from './Block';
import { TurnDetail } from './TurnDetail';

/** What went into one step, and what came of it. */
export function StepDetail({ run, step, steps }: { run: RunDetail; step: Step; steps: Steps }) {
  const calls = steps.calls.filter((call) => call.path === step.path);
  return (
    <article className={styles.detail} aria-label="Selected step">
      <header className={styles.header}>
        <h2>{stepTitle(step, calls, steps.steps)}</h2>
        <Agent id={step.agent} />
        {step.state === 'started' && <Badge tone="info">In progress</Badge>}
        <span className={styles.when}><Time at={step.at} /></span>
      </header>
      <div className={styles.path}><code>{step.path}</code><CopyButton text={step.path} label="Copy path" /></div>
      {calls.length > 0 && <CallsTable calls={calls} />}
      {step.kind === 'turn' ? <TurnDetail run={run} step={step} steps={steps} /> : step.kind === 'tool' ? <ToolDetail step={step} steps={steps} /> : <Plain step={step} />}
    </article>
  );
}

function ToolDetail({ step, steps }: { step: Step; steps: Steps }) {
  const tool = toolOf(step, steps.calls, steps.steps);
  return (
    <>
      <Block title="Arguments" text={tool.arguments} isCode empty="No arguments were recorded." />
      <Block title={tool.failed ? 'Error' : 'Result'} text={tool.result} isCode isFailed={tool.failed} empty={step.state === 'started' ? 'The tool has not returned yet.' : 'It returned nothing.'} />
    </>
  );
}

function Plain({ step }: { step: Step }) {
  const isText = step.kind === 'say' || step.kind === 'session';
  const input = isText ? textOf(step.input) : pretty(step.input);
  const output = isText ? textOf(step.output) : pretty(step.output);
  return (
    <>
      {(step.kind === 'session' || input) && <Block title={step.kind === 'session' ? 'Task' : 'Input'} text={input} isCode={!isText} empty="The task is the person's message." />}
      {output && <Block title={step.kind === 'session' ? 'Answer' : 'Recorded'} text={output} isCode={!isText} />}
      {!input && !output && step.kind !== 'session' && <p className="faint">Nothing more was recorded.</p>}
    </>
  );
}
