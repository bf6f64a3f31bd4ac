import { useEffect, useRef, useState } from 'react';
import { useAgents } from '@/api/useAgents';
import { isOver } from '@/run/status';
import type { ThreadState } from '@/thread/state';

/** Tells screen readers of handoffs, steps and finished answers; never of every word. */
export function Announcer({ state, agent }: { state: ThreadState; agent: string | undefined }) {
  const { face } = useAgents();
  const [text, setText] = useState('');
  const handoff = state.handoff && `${state.handoff.phase}:${state.handoff.name}`;
  const step = state.handoff && state.progress ? `Step ${state.progress.step} of ${state.progress.total}: ${state.progress.label}` : undefined;
  const before = useRef(handoff);
  const name = agent === undefined ? 'the main assistant' : face(agent).name;

  useEffect(() => {
    const hadHandoff = before.current;
    before.current = handoff;
    const [phase, who] = handoff?.split(':') ?? [];
    if (phase === 'connecting') setText(`Connecting you with ${who}`);
    else if (phase === 'active') setText(`Now with ${who}. ${step ?? ''}`);
    else if (phase === 'returning') setText('Returning you to the main assistant');
    else if (hadHandoff) setText(`Back with ${name}`);
  }, [handoff, step, name]);

  const active = state.activeRun;
  const last = useRef(active);
  useEffect(() => {
    const ended = last.current;
    last.current = active;
    const run = ended === undefined || ended === active ? undefined : state.runs[ended];
    if (run?.status === 'waiting') setText('The agent waits for your decision');
    else if (run && isOver(run.status)) setText(run.status === 'completed' ? 'The answer is complete' : `The answer was ${run.status}`);
  }, [active, state.runs]);

  return <div className="visually-hidden" aria-live="polite" role="status">{text}</div>;
}
