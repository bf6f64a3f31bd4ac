import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Ask, Says } from './provider';

export const WRITE = 'Write the notes';
export const PLAN = 'Plan the meeting';
export const DONE = 'The notes are written.';
export const NOT_DONE = 'Understood, nothing was written.';

/** Three levels: the assistant calls the lead, the lead calls the writer, and the writer needs an approval for `write_file`. */
const AGENTS: Record<string, string> = {
  assistant: '---\ndisplay_name: Assistant\ndescription: Answers.\nagents: [lead]\ntools: [ask_user]\n---\nYou are the main assistant.\n',
  lead: '---\ndisplay_name: Lead\ndescription: Leads the work.\nagents: [writer]\n---\nYou lead the work.\n',
  writer: '---\ndisplay_name: Writer\ndescription: Writes files.\ntools: [write_file]\napprovals: { ask: [write_file] }\n---\nYou write files.\n',
};

export function agentsFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'baton-agents-'));
  for (const [name, text] of Object.entries(AGENTS)) writeFileSync(join(folder, `${name}.md`), text);
  return folder;
}

/** What the agents do: pass the work on, write the file, and say what came back. */
export function writing({ system, last, isTool, messages }: Ask): Says {
  if (system.includes('You write files')) {
    if (isTool) return { text: `The tool said: ${last}` };
    return { call: ['write_file', { path: 'notes.md', content: 'Rate limits are 600 a minute.\n' }] };
  }
  if (system.includes('You lead the work')) return isTool ? { text: `The writer said: ${last}` } : { call: ['call_agent', { specialist: 'writer', mission: 'Write notes.md' }] };
  if (isTool) return { text: answerTo(last) };
  const asks = messages.filter((message) => message.role === 'user').at(-1)?.content ?? last;
  const wish = typeof asks === 'string' ? asks : JSON.stringify(asks);
  if (wish.includes(PLAN)) return { call: ['ask_user', { question: 'Which day suits you?', choices: ['Monday', 'Tuesday'] }] };
  return { call: ['call_agent', { specialist: 'lead', mission: 'Have notes.md written' }] };
}

function answerTo(result: string): string {
  if (result.includes('denied')) return NOT_DONE;
  if (/Monday|Tuesday|Sunday/.test(result)) return `The meeting is on ${/Monday|Tuesday|Sunday/.exec(result)?.[0]}.`;
  return DONE;
}
