import { describe, expect, it } from 'vitest';
import type { AguiEvent, HandoffValue } from '@/api/events';
import { isOver } from '@/run/status';
import { reduce } from './reducer';
import { emptyThread, type Item, type MessageItem, type SubAgent, type ThreadState } from './state';

/**
 * Event logs as the server sends them, written by the Rust test `page` of the crate `baton-agui`: runs of the engine's snapshots, threads with
 * handoffs, and generated ones.
 */
const files = import.meta.glob<unknown>('./fixtures/*.json', { eager: true, import: 'default' });
const named = <T>(pattern: RegExp) => Object.entries(files).flatMap(([path, content]) => {
  const name = pattern.exec(path)?.[1];
  return name ? [[name, content as T] as const] : [];
});
const LOGS = named<AguiEvent[]>(/fixtures\/(.+\.(?:person|trace))\.json$/);
const RESUMED = named<Resumed>(/fixtures\/(.+)\.resumed\.json$/);

/** What the server sends to a client that reconnects; see `resume.rs`. */
interface Resumed {
  questions: { id: string; runId: string; text: string }[];
  ids: number[];
  kept: AguiEvent[];
  late: { after: number; first: AguiEvent[] }[];
  live: { heard: number; first: AguiEvent[]; rest?: AguiEvent[] }[];
}

const play = (events: AguiEvent[], from: ThreadState = emptyThread) => reduce(from, { type: 'events', events });
const isHandoff = (event: AguiEvent) => event.type === 'CUSTOM' && event.name === 'baton.handoff';

describe.each(LOGS)('%s', (_, events) => {
  const state = play(events);

  it('leaves nothing open but runs that wait for a decision', () => {
    expect(state.activeRun).toBeUndefined();
    expect(state.items.filter((item) => item.kind === 'message' && item.status !== 'done')).toEqual([]);
    for (const run of Object.values(state.runs)) {
      expect(isOver(run.status) || run.status === 'waiting').toBe(true);
      expect(run.activity).toBeUndefined();
      expect(run.subAgents.filter((one) => one.status === 'running')).toEqual([]);
    }
  });

  it('shows every text once, as it was written', () => {
    expect(texts(state)).toEqual(written(events));
  });

  it('ends with the last phase of the handoff', () => {
    const last = events.findLast(isHandoff);
    const value = last?.type === 'CUSTOM' ? (last.value as HandoffValue) : undefined;
    const isOpen = value && ['connecting', 'active', 'returning'].includes(value.phase);
    expect(state.handoff).toEqual(isOpen ? { id: value.handoff_id, phase: value.phase, from: value.from, to: value.to, name: value.display_name } : undefined);
    if (value && !isOpen) expect(state.progress).toBeUndefined();
  });

  it('is the same in one batch and event by event', () => {
    expect(events.reduce((before, event) => play([event], before), emptyThread)).toEqual(state);
  });

  it('reads as before', () => {
    expect(readable(state)).toMatchSnapshot();
  });
});

describe.each(RESUMED)('%s, cut and resumed', (name, resumed) => {
  const events = LOGS.find(([log]) => log === name)?.[1] ?? [];
  const heard = (count: number) => withQuestions(events.slice(0, count), resumed);
  const whole = withQuestions(events, resumed);
  const finished = new Set(resumed.kept.flatMap((event) => (event.type === 'TEXT_MESSAGE_END' ? [event.messageId] : [])));

  it('goes on at once', () => {
    for (const { heard: count, first, rest } of resumed.live) {
      const state = withQuestions(rest ?? events.slice(count), resumed, play(first, heard(count)));
      expect(shown(state), `cut after ${count} of ${events.length}`).toEqual(shown(whole));
    }
  });

  // A text that was never finished is not kept: it is known only to those who were there.
  it('goes on when the texts have been written meanwhile', () => {
    for (let count = 1; count < events.length; count += 1) {
      const after = resumed.ids[count - 1] ?? 0;
      const first = resumed.late.find((one) => one.after === after)?.first ?? [];
      const rest = resumed.kept.filter((event) => (event.metadata?.baton?.seq ?? 0) > after);
      const state = withQuestions(rest, resumed, play(first, heard(count)));
      expect(shown(state, finished), `cut after ${count} of ${events.length}`).toEqual(shown(whole, finished));
    }
  });

  it('shows the same messages to a client that joins in the middle', () => {
    const complete = whole.items.filter((item) => item.kind === 'message' && (item.role === 'user' || finished.has(item.id)));
    for (const { heard: count, first, rest } of resumed.live.filter((one) => one.first.length > 0)) {
      const state = withQuestions(rest ?? events.slice(count), resumed, play(first));
      expect(state.items.filter((item) => complete.some(({ id }) => id === item.id)).map(line), `came after ${count} of ${events.length}`).toEqual(complete.map(line));
      expect(new Set(state.items.map((item) => item.id)).size).toBe(state.items.length);
    }
  });
});

/** The events, each run after the message that began it. */
function withQuestions(events: AguiEvent[], { questions }: Resumed, from: ThreadState = emptyThread): ThreadState {
  return events.reduce((state, event) => {
    const asked = event.type === 'RUN_STARTED' ? questions.find((one) => one.runId === event.runId && !state.items.some((item) => item.id === one.id)) : undefined;
    if (!asked) return play([event], state);
    const localId = `local:${asked.id}`;
    const sent = reduce(state, { type: 'sending', message: { kind: 'message', id: localId, role: 'user', text: asked.text, attachments: [], at: 0, status: 'sending' } });
    return play([event], reduce(sent, { type: 'accepted', localId, messageId: asked.id, runId: asked.runId, agent: '' }));
  }, from);
}

/** The texts of the log for the person, by the ids of their messages. */
function written(events: AguiEvent[]): Record<string, string> {
  const texts: Record<string, string> = {};
  for (const event of events.filter((one) => one.subagentRunId === undefined)) {
    if (event.type === 'TEXT_MESSAGE_START') texts[event.messageId] = '';
    if (event.type === 'TEXT_MESSAGE_CONTENT') texts[event.messageId] += event.delta;
    if (event.type === 'CUSTOM' && event.name === 'baton.turn_restarted') delete texts[(event.value as { message_id: string }).message_id];
  }
  return texts;
}

function texts(state: ThreadState): Record<string, string> {
  const messages = state.items.filter((item): item is MessageItem => item.kind === 'message' && item.role === 'assistant');
  expect(new Set(messages.map((item) => item.id)).size).toBe(messages.length);
  return Object.fromEntries(messages.map((item) => [item.id, item.text]));
}

/** Everything that is shown, without times; of texts only these, if they are given. */
function shown(state: ThreadState, only?: Set<string>) {
  const isWanted = (id: string) => !only || only.has(id);
  const agent = ({ id, parent, name, task, status, texts, tools, error }: SubAgent) => ({ id, parent, name, task, status, texts: texts?.filter((one) => isWanted(one.id)) ?? [], tools, error });
  const runs = Object.values(state.runs).map((run) => ({ id: run.id, agent: run.agent, status: run.status, error: run.error, usage: run.usage, sources: run.sources, activity: run.activity, subAgents: run.subAgents.map(agent) }));
  const items = state.items.filter((item) => item.kind !== 'message' || item.role === 'user' || isWanted(item.id));
  return { items: items.map(line), runs, activeRun: state.activeRun, activeAgent: state.activeAgent, handoff: state.handoff, progress: state.progress };
}

function line(item: Item): string {
  if (item.kind === 'divider') return `── ${item.text} [${item.edge}${item.failed ? ', failed' : ''}: ${item.agent}]`;
  if (item.kind === 'request') return `?? ${item.approval.tool} [${item.approval.status}]`;
  const who = item.role === 'user' ? '>' : `${item.name ?? item.agent}:`;
  return `${who} ${item.text}${item.status === 'done' ? '' : ` [${item.status}]`}`;
}

/** One line per item, then the runs with their sub-agents, and the header. */
function readable(state: ThreadState): string {
  const runs = Object.values(state.runs).flatMap((run) => [
    `run of ${run.agent}: ${run.status}${run.error ? `, ${run.error.message}` : ''}`,
    ...run.subAgents.map((one) => `  ${one.parent ? '  ' : ''}${one.name} (${one.status}): ${JSON.stringify(one.text)}${one.tools.map((call) => ` ${call.name}(${call.arguments})`).join('')}${one.error ? `, ${one.error}` : ''}`),
  ]);
  const { handoff, progress, activeAgent } = state;
  const header = [`with ${activeAgent?.display_name}`, handoff && `handoff ${handoff.phase} to ${handoff.name}`, progress && `step ${progress.step} of ${progress.total}`].filter(Boolean).join(', ');
  return ['', ...state.items.map(line), ...runs, header, ''].join('\n');
}
