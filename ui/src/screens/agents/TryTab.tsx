import { Play, Send, Square } from 'lucide-react';
import { useState, type FormEvent, type KeyboardEvent } from 'react';
import type { AgentDetail } from '@/api/types';
import { Button } from '@/design';
import { TrialView } from './TrialView';
import styles from './Try.module.css';
import { useTrial } from './useTrial';

/** A message to this agent in a new thread, outside of any conversation. */
export function TryTab({ agent }: { agent: AgentDetail }) {
  const [text, setText] = useState('');
  const { trial, send, stop } = useTrial(agent.id);
  const running = trial?.status === 'running';
  const submit = (event?: FormEvent) => {
    event?.preventDefault();
    if (!text.trim() || running) return;
    void send(text.trim());
    setText('');
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Enter' && !event.shiftKey && !event.nativeEvent.isComposing) {
      event.preventDefault();
      submit();
    }
  };
  return (
    <div className={styles.try}>
      <form onSubmit={submit} className={styles.form}>
        <label htmlFor="try-message" className="visually-hidden">Message to {agent.display_name}</label>
        <textarea id="try-message" rows={3} dir="auto" className={styles.input} placeholder={`Ask ${agent.display_name} something`} value={text} onChange={(event) => setText(event.target.value)} onKeyDown={onKeyDown} />
        <div className={styles.bar}>
          <p className={styles.hint}>Each message starts a new thread. Enter sends, Shift+Enter makes a new line.</p>
          {running ? <Button icon={Square} disabled={!trial?.runId} onClick={() => void stop()}>Stop</Button> : <Button type="submit" kind="primary" icon={Send} disabled={!text.trim()}>Send</Button>}
        </div>
      </form>
      {trial ? <TrialView trial={trial} agent={agent.id} /> : <Examples agent={agent} onChoose={(example) => void send(example)} />}
    </div>
  );
}

function Examples({ agent, onChoose }: { agent: AgentDetail; onChoose: (example: string) => void }) {
  const examples = (agent.trigger_examples ?? []).slice(0, 4);
  if (examples.length === 0) return null;
  return (
    <div className={styles.examples}>
      <h3>Examples</h3>
      {examples.map((example) => <Button key={example} size="small" icon={Play} onClick={() => onChoose(example)}>{example}</Button>)}
    </div>
  );
}
