import type { Baton } from './baton';
import { COMPARE, QUESTION, WISH } from './journeys';

export const THREAD = '11111111-1111-4111-8111-111111111111';
export const PARALLEL = '33333333-3333-4333-8333-333333333333';
export const HANDOFF = '22222222-2222-4222-8222-222222222222';

/** Conversations, runs, a created skill and an open handoff, made by talking to the bundled agents without a model. */
export async function fill(baton: Baton): Promise<{ run: string }> {
  const { run_id: run } = await baton.say(PARALLEL, COMPARE);
  await baton.say(THREAD, QUESTION);
  for (const words of [WISH, 'Read the report. Write the alert.', 'message', 'Slack Alert', 'alert the team on Slack', 'summarize a channel', 'yes']) await baton.say(THREAD, words);
  await baton.say(HANDOFF, WISH);
  await baton.say(HANDOFF, 'Read the report. Write the alert. Post it to the channel.');
  return { run };
}

export function address(path: string, run: string): string {
  return path.replace('{thread}', THREAD).replace('{handoff}', HANDOFF).replace('{run}', run);
}
