import type { Ask, Says } from './provider';

export const QUESTION = 'How do I configure rate limiting for my agent?';
export const WISH = 'I want to create a skill that sends Slack alerts';
/** The bundled assistant asks two agents at once for this. */
export const COMPARE = 'Compare what the documentation and the web say about rate limiting';
export const CONNECTING = 'Connecting you with Skill Creation Assistant...';
export const READY = 'Your skill is ready! Returning you to the main assistant.';
export const ACTIVE = "Great, your 'Slack Alert' skill is now active.";
export const LEFT = 'No problem! Returning you to the main assistant.';
export const LATER = "Let me know if you'd like to continue creating that skill later.";

const ANSWER = 'Set `requests_per_minute`. It counts for each tenant.\n\n```toml\n[limits]\nrequests_per_minute = 600\n```\n\n| key | default |\n|---|---|\n| requests_per_minute | 600 |\n';
export const LONG = Array.from({ length: 60 }, (_, at) => `Sentence ${at + 1} of a long answer.`).join(' ');

/** The model of the journeys: does what a good one would. */
export function scripted({ agent, last, isTool }: Ask): Says {
  if (agent === 'skill-creator') return creator(last, isTool);
  if (agent === 'knowledge') return isTool ? { text: 'Set it in the configuration. [1]\n\nSources\n[1] docs/configuration.md' } : { call: ['search_docs', { query: 'rate limiting' }] };
  if (agent !== 'assistant') return { text: 'Done.' };
  if (isTool) return { text: ANSWER };
  if (last.includes('The conversation is yours again')) return { text: ACTIVE };
  if (last.includes('create a skill')) return { text: "I'll connect you. ", call: ['transfer_to_skill_creator', { reason: 'a skill is wanted', context: { purpose: 'sends Slack alerts' } }] };
  if (last.includes('long')) return { text: LONG };
  if (last.includes('both')) return { calls: [['call_agent', { specialist: 'knowledge', mission: 'rate limiting' }], ['call_agent', { specialist: 'research', mission: 'rate limiting' }]] };
  return { call: ['call_agent', { specialist: 'knowledge', mission: 'How is rate limiting configured?' }] };
}

function creator(last: string, isTool: boolean): Says {
  if (isTool) {
    const told = parse(last);
    if (told.is_done) return { call: ['complete_handoff', { result_summary: 'The skill is saved.', artifacts: ['skill:slack-alert'] }] };
    if (told.problem) return { text: `That did not work: ${told.problem}` };
    const ask = told.missing?.[0]?.ask ?? told.confirm;
    return { text: ask ? `Good.\n\n${ask}` : 'All right.' };
  }
  const values = valuesIn(last.split('The message follows.').at(-1) ?? last);
  if (Object.keys(values).length > 0) return { call: ['advance_workflow', { values }] };
  const open = /\nNow: (?:Ask the person: )?(.*)/.exec(last)?.[1] ?? '';
  return { text: `I know what you want.\n\n${open}` };
}

/** What free words say: several values at once. */
function valuesIn(text: string): Record<string, unknown> {
  const leads = { steps: 'do this: ', name: 'call it ', triggers: 'people say ', non_triggers: 'not when they say ' };
  const values: Record<string, unknown> = {};
  for (const [key, lead] of Object.entries(leads)) {
    const at = text.toLowerCase().indexOf(lead);
    if (at >= 0) values[key] = text.slice(at + lead.length).split('.')[0];
  }
  if (text.includes('as a message')) values.format = 'message';
  if (text.trim() === 'yes') values.confirmed = true;
  return values;
}

function parse(text: string): any {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}
