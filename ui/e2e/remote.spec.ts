import { cpSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Chat } from './support/chat';
import { CONNECTING, LEFT, READY, WISH } from './support/journeys';
import { expect, test } from './support/test';

const bundled = fileURLToPath(new URL('../../agents', import.meta.url));
const SPECIALIST = 'Skill Creation Assistant';

/** The bundled agents, with the skill creator of another server in place of their own. */
function agentsWith(server: string): string {
  const dir = mkdtempSync(join(tmpdir(), 'baton-e2e-agents-'));
  cpSync(bundled, dir, { recursive: true });
  const card = `${server}/a2a/skill-creator/.well-known/agent-card.json`;
  const head = ['name: skill-creator', `display_name: ${SPECIALIST}`, 'description: Creates skills on another server.', 'kind: remote', `agent_card_url: ${card}`];
  const handoff = ['accepts_handoff:', '  triggers: ["create a skill", "new skill"]', '  trigger_mode: auto'];
  writeFileSync(join(dir, 'skill-creator.md'), ['---', ...head, ...handoff, '---', ''].join('\n'));
  return dir;
}

test('an agent of another server takes the conversation, creates a skill there and gives it back', async ({ page, start }) => {
  const there = await start();
  const here = await start({ agents: agentsWith(there.url) });
  const chat = await new Chat(page).open(here.url);
  await chat.say(WISH);
  await expect(chat.times(CONNECTING)).toBeVisible();
  await expect(page.getByRole('banner').getByText(SPECIALIST).first(), 'who has the thread').toBeVisible();
  await chat.answer(SPECIALIST, /./);
  for (const words of ['Read the report. Write the alert.', 'message', 'Slack Alert', 'alert the team on Slack', 'summarize a channel']) {
    const before = await chat.answers(SPECIALIST).count();
    await chat.say(words);
    await expect(chat.answers(SPECIALIST), `an answer to "${words}"`).toHaveCount(before + 1);
    await expect(chat.exit, 'how to leave').toBeEnabled();
  }
  await chat.say('yes');
  await expect(chat.times(READY).first()).toBeVisible();
  await expect(chat.exit, 'the main assistant has the thread').toBeHidden();
  expect(there.project.run('skills', 'show', 'slack-alert')).toContain('name: slack-alert');
});

test('a conversation with an agent of another server can be left while that server is down', async ({ page, start }) => {
  const there = await start();
  const here = await start({ agents: agentsWith(there.url) });
  const chat = await new Chat(page).open(here.url);
  await chat.say(WISH);
  await chat.answer(SPECIALIST, /./);
  await there.kill('SIGKILL');
  await chat.exit.click();
  await expect(chat.times(LEFT).first()).toBeVisible();
  await expect(chat.exit).toBeHidden();
});
