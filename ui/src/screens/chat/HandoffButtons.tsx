import { ArrowRight } from 'lucide-react';
import { useAgents } from '@/api/useAgents';
import { Button } from '@/design';
import type { ThreadState } from '@/thread/state';
import styles from './Conversation.module.css';
import { useChat } from './context';

/** Next steps that the agent of the last answer offers. */
export function HandoffButtons({ state }: { state: ThreadState }) {
  const { agents } = useAgents();
  const { mayWrite, send, fill } = useChat();
  const last = state.items.findLast((item) => item.kind === 'message');
  if (!mayWrite || state.activeRun || last?.kind !== 'message' || last.role !== 'assistant' || last.status !== 'done') return null;
  const offers = agents.find(({ id }) => id === last.agent)?.handoffs ?? [];
  if (offers.length === 0) return null;
  return (
    <div className={styles.suggestions} role="group" aria-label="Next steps">
      {offers.map(({ label, agent, prompt, send: isSent }) => (
        <Button key={`${label}:${agent}`} size="small" icon={ArrowRight} onClick={() => (isSent ? void send({ text: prompt || label, agent }) : fill(prompt || label, agent))}>{label}</Button>
      ))}
    </div>
  );
}
