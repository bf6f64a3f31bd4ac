import { createParser } from 'eventsource-parser';
import { useEffect, useRef, useState } from 'react';
import { request } from '@/api/client';
import type { AguiEvent } from '@/api/events';
import { sentence } from '@/api/problem';
import { batched } from '@/lib/batch';
import { newId } from '@/lib/ids';
import { cancelRun } from '@/run/queries';
import { applyEvent, newTrial, type Trial } from './trial';

/** Sends a message to one agent in a new thread and follows the answer. Leaving the page does not cancel the run; `stop` does. */
export function useTrial(agent: string) {
  const [trial, setTrial] = useState<Trial>();
  const closing = useRef<AbortController>(undefined);
  useEffect(() => () => closing.current?.abort(), []);

  const send = async (question: string) => {
    closing.current?.abort();
    const controller = new AbortController();
    closing.current = controller;
    const threadId = newId();
    setTrial(newTrial(threadId, question));
    const update = (change: (trial: Trial) => Trial) => setTrial((old) => (old?.threadId === threadId ? change(old) : old));
    const events = batched<AguiEvent>((list) => update((old) => list.reduce(applyEvent, old)));
    try {
      await stream(threadId, { content: question, agent }, controller.signal, events.push);
      // A stream that ends without a last event was cut.
      update((old) => (old.status === 'running' ? { ...old, activity: 'The connection was lost; the run continues.' } : old));
    } catch (error) {
      events.cancel();
      if (!controller.signal.aborted) update((old) => ({ ...old, status: 'failed', error: sentence(error) }));
    }
  };

  const stop = () => trial?.runId && cancelRun(trial.runId, 'abort').catch((error: unknown) => setTrial((old) => old && { ...old, error: sentence(error) }));

  return { trial, send, stop };
}

async function stream(threadId: string, body: object, signal: AbortSignal, onEvent: (event: AguiEvent) => void): Promise<void> {
  const response = await request(`/api/v1/threads/${threadId}/messages`, { method: 'POST', signal, headers: { 'Content-Type': 'application/json', Accept: 'text/event-stream' }, body: JSON.stringify(body) });
  const parser = createParser({ onEvent: ({ data }) => onEvent(JSON.parse(data) as AguiEvent) });
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    parser.feed(value);
  }
}
