import type { UsageValue, WireUsage } from '@/api/events';
import type { RunState, SubAgent, ThreadState, ToolCall, Usage } from './state';

export function changeRun(state: ThreadState, runId: string | undefined, change: (run: RunState) => RunState): ThreadState {
  const run = runId === undefined ? undefined : state.runs[runId];
  return run ? { ...state, runs: { ...state.runs, [run.id]: change(run) } } : state;
}

/** Begins a run, or continues one that is known: after a reconnect the stream repeats its beginning. */
export function startRun(state: ThreadState, id: string, agent: string, at: number): ThreadState {
  const known = state.runs[id];
  const fresh: RunState = { id, agent, status: 'running', startedAt: at, subAgents: [], sources: [] };
  const run: RunState = known ? { ...known, agent: known.agent || agent, status: 'running', startedAt: known.status === 'queued' ? at : known.startedAt, finishedAt: undefined } : fresh;
  return { ...state, activeRun: id, runs: { ...state.runs, [id]: run } };
}

export function endRun(state: ThreadState, id: string, end: Partial<RunState>, at: number): ThreadState {
  const ended = changeRun(state, id, (run) => ({ ...run, ...end, activity: undefined, finishedAt: at, subAgents: run.subAgents.map((one) => settle(one, end.status, at)) }));
  if (ended.activeRun !== id) return ended;
  // A run that was cancelled in the queue begins and ends while another one goes on.
  const other = Object.values(ended.runs).find(({ status }) => status === 'running');
  return { ...ended, activeRun: other?.id };
}

/** A sub-agent whose end was missed has ended with its run. One that waits goes on with it. */
function settle(one: SubAgent, end: RunState['status'] | undefined, at: number): SubAgent {
  if (end === 'waiting') return one.status === 'running' ? { ...one, status: 'waiting' } : one;
  return one.status === 'running' || one.status === 'waiting' ? { ...one, status: end === 'cancelled' ? 'cancelled' : 'done', finishedAt: at } : one;
}

export function changeSubAgent(run: RunState, id: string, change: (one: SubAgent) => SubAgent): RunState {
  return { ...run, subAgents: run.subAgents.map((one) => (one.id === id ? change(one) : one)) };
}

/** Adds a sub-agent, or continues one that waited: its beginning is repeated when the run resumes. */
export function addSubAgent(run: RunState, one: SubAgent): RunState {
  if (!run.subAgents.some((other) => other.id === one.id)) return { ...run, subAgents: [...run.subAgents, one] };
  return changeSubAgent(run, one.id, (old) => (old.status !== 'running' ? { ...old, status: 'running', finishedAt: undefined } : old));
}

export function changeTool(one: SubAgent, id: string, change: (call: ToolCall) => ToolCall): SubAgent {
  return { ...one, tools: one.tools.map((call) => (call.id === id ? change(call) : call)) };
}

/** Changes one message of a sub-agent; `undefined` drops it, one that is not known is added. */
export function changeText(one: SubAgent, id: string, change: (text: string) => string | undefined): SubAgent {
  const known = one.texts ?? [];
  const text = change(known.find((message) => message.id === id)?.text ?? '');
  const isKnown = known.some((message) => message.id === id);
  const texts = text === undefined ? known.filter((message) => message.id !== id) : isKnown ? known.map((message) => (message.id === id ? { id, text } : message)) : [...known, { id, text }];
  return { ...one, texts, text: texts.map((message) => message.text).filter(Boolean).join('\n\n') };
}

export function applyUsage(run: RunState, value: UsageValue): RunState {
  return { ...run, sources: value.sources ?? run.sources, ...(value.usage ? { usage: usageOf(value.usage) } : {}) };
}

/** The stream spells money as `{price, usd}`, the API as `cost_usd` and `cost_known`; the page keeps the second. */
function usageOf({ input_tokens, output_tokens, cost }: WireUsage): Usage {
  return { input_tokens, output_tokens, cost_known: cost.price === 'known', cost_usd: String(cost.usd ?? 0) };
}
