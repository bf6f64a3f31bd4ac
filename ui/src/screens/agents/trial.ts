import type { AguiEvent, UsageValue } from '@/api/events';

/** One message to an agent and what became of it. */
export interface Trial {
  threadId: string;
  question: string;
  runId?: string | undefined;
  /** Who speaks; another agent than the one asked after a transfer. */
  speaker?: string | undefined;
  answers: { id: string; text: string }[];
  activity?: string | undefined;
  helpers: { id: string; name: string; status: 'running' | 'done' | 'failed' }[];
  usage?: UsageValue['usage'];
  status: 'running' | 'done' | 'waiting' | 'cancelled' | 'failed';
  error?: string | undefined;
}

export function newTrial(threadId: string, question: string): Trial {
  return { threadId, question, answers: [], helpers: [], status: 'running' };
}

export function applyEvent(trial: Trial, event: AguiEvent): Trial {
  switch (event.type) {
    case 'RUN_STARTED': return { ...trial, runId: event.runId };
    case 'RUN_FINISHED': return { ...trial, activity: undefined, status: event.outcome?.type === 'interrupt' ? 'waiting' : event.outcome?.type === 'cancelled' ? 'cancelled' : 'done' };
    case 'RUN_ERROR': return { ...trial, activity: undefined, status: 'failed', error: event.message };
    case 'SUBAGENT_STARTED': return { ...trial, helpers: [...trial.helpers, { id: event.subagentRunId, name: event.name, status: 'running' }] };
    case 'SUBAGENT_FINISHED': return settle(trial, event.subagentRunId, 'done');
    case 'SUBAGENT_ERROR': return settle(trial, event.subagentRunId, 'failed');
    case 'TEXT_MESSAGE_START': return event.subagentRunId ? trial : { ...trial, speaker: event.metadata?.baton?.agent, answers: [...trial.answers, { id: event.messageId, text: '' }] };
    case 'TEXT_MESSAGE_CONTENT': return event.subagentRunId ? trial : { ...trial, answers: trial.answers.map((answer) => (answer.id === event.messageId ? { ...answer, text: answer.text + event.delta } : answer)) };
    case 'ACTIVITY_SNAPSHOT': return event.activityType === 'baton.status' ? { ...trial, activity: String(event.content.text ?? '') } : trial;
    case 'CUSTOM': return custom(trial, event.name, event.value);
    default: return trial;
  }
}

function settle(trial: Trial, id: string, status: 'done' | 'failed'): Trial {
  return { ...trial, helpers: trial.helpers.map((helper) => (helper.id === id ? { ...helper, status } : helper)) };
}

function custom(trial: Trial, name: string, value: unknown): Trial {
  if (name === 'baton.usage') return { ...trial, usage: (value as UsageValue).usage };
  // A fault cut this text; it comes again as a whole.
  if (name === 'baton.turn_restarted') return { ...trial, answers: trial.answers.filter((answer) => answer.id !== (value as { message_id: string }).message_id) };
  return trial;
}
