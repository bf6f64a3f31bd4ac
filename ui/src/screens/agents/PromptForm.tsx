import { useState, type FormEvent } from 'react';
import { useAgents } from '@/api/useAgents';
import { Button, SelectField, TextField } from '@/design';
import styles from './Agent.module.css';
import type { PromptInput, Via } from './queries';

const VIAS: [Via, string][] = [['call', 'Call'], ['delegate', 'Delegation'], ['advisor', 'Advisor'], ['member', 'Team member'], ['handoff', 'Chain'], ['route', 'Route'], ['transfer', 'Transfer']];

/** The situation for which the prompt is made. Everything is optional. */
export function PromptForm({ agent, busy, onSubmit }: { agent: string; busy: boolean; onSubmit: (input: PromptInput) => void }) {
  const { agents } = useAgents();
  const [from, setFrom] = useState('');
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const text = (name: string) => String(form.get(name) ?? '').trim() || undefined;
    onSubmit({ message: text('message'), thread_id: text('thread_id'), ...(from ? { from, via: text('via') as Via | undefined } : {}) });
  };
  return (
    <form className={styles.form} onSubmit={submit}>
      <TextField name="message" label="Message" placeholder="What the person asks" className={styles.grow} dir="auto" />
      <SelectField name="from" label="Involved by" value={from} onChange={(event) => setFrom(event.target.value)}>
        <option value="">The person</option>
        {agents.filter((other) => other.id !== agent).map((other) => <option key={other.id} value={other.id}>{other.display_name}</option>)}
      </SelectField>
      <SelectField name="via" label="By" disabled={!from} defaultValue="call">{VIAS.map(([via, label]) => <option key={via} value={via}>{label}</option>)}</SelectField>
      <TextField name="thread_id" label="Thread" placeholder="Thread id, or empty for a new one" />
      <Button type="submit" busy={busy}>Show</Button>
    </form>
  );
}
