import type { Page } from '@playwright/test';
import type { Baton } from './support/baton';
import { Chat } from './support/chat';
import { ACTIVE, CONNECTING, LATER, LEFT, QUESTION, READY, WISH } from './support/journeys';
import { expect, test } from './support/test';

const STEPS = 'Do this: read the report, then write the alert.';

/** What is said to the rules and to the model, and how far the workflow is then. */
const OFFLINE: [string, string][] = [
  ['Read the report. Write the alert.', 'Step 1 of 5'],
  ['message', 'Step 1 of 5'],
  ['Slack Alert', 'Step 2 of 5'],
  ['alert the team on Slack', 'Step 2 of 5'],
  ['summarize a channel', 'Step 4 of 5'],
];
const SCRIPTED: [string, string][] = [
  [`${STEPS} I want it as a message. Call it Slack Alert.`, 'Step 2 of 5'],
  ['People say alert the team on Slack. Not when they say summarize a channel.', 'Step 4 of 5'],
];

async function createSkill(page: Page, baton: Baton, turns: [string, string][], by: 'mouse' | 'keyboard') {
  const chat = await new Chat(page, by).open(baton.url);
  await chat.say(WISH);
  await expect(chat.times(CONNECTING), 'J2.3').toBeVisible();
  await expect(page.getByRole('banner').getByText('Skill Creation Assistant').first(), 'C-19: who has the thread').toBeVisible();
  await expect(chat.exit, 'C-19: how to leave').toBeEnabled();
  for (const [words, step] of turns) {
    const before = await chat.answers('Skill Creation Assistant').count();
    await chat.say(words);
    await expect(chat.answers('Skill Creation Assistant'), `J2.5: an answer to "${words}"`).toHaveCount(before + 1);
    await expect(page.getByText(new RegExp(`${step} · `)).first(), 'C-19, C-35: how far it is').toBeVisible();
    await expect(chat.exit, 'C-19: at every step').toBeEnabled();
  }
  await chat.say('yes');
  await expect(chat.times(READY).first(), 'J2.6').toBeVisible();
  await chat.answer('Assistant', ACTIVE);
  await expect(chat.exit, 'J2.7: the main assistant has the thread').toBeHidden();
  expect(baton.project.run('skills', 'show', 'slack-alert'), 'J2.5').toContain('name: slack-alert');
}

test.describe('without a model', () => {
  test('J1: a question is answered from the documents, by mouse', async ({ page, start }) => {
    const baton = await start();
    const chat = await new Chat(page, 'mouse').open(baton.url);
    await chat.say(QUESTION);
    const answer = await chat.answer('Assistant', 'requests_per_minute');
    await expect(answer.locator('pre code'), 'J1.5').toContainText('[limits]');
    await expect(answer.getByRole('button', { name: 'Copy code' }).first()).toBeVisible();
    await expect(chat.log.getByText('Knowledge').first(), 'C-34: sub-agents are rows, not speakers').toBeVisible();
    await expect(chat.answers('Knowledge')).toHaveCount(0);
    await expect(page, 'the conversation has an address').toHaveURL(/\/threads\/[0-9a-f-]{36}$/);
    await expect(page.getByRole('link', { name: new RegExp(QUESTION.slice(0, 20)) }).first(), 'and stands in the list').toBeVisible();
  });

  test('J2: a skill is created with a handoff, by mouse', async ({ page, start }) => {
    await createSkill(page, await start(), OFFLINE, 'mouse');
  });

  test('K9: a new conversation offers the work that was left in another one, by mouse', async ({ page, start }) => {
    const baton = await start();
    const chat = await new Chat(page, 'mouse').open(baton.url);
    await chat.say(WISH);
    await chat.answer('Skill Creation Assistant', 'step by step');
    await chat.exit.click();
    await expect(chat.times(LEFT).first()).toBeVisible();
    const left = page.url();

    const notice = page.getByRole('region', { name: 'Unfinished work with Skill Creation Assistant' });
    await page.goto(baton.url);
    await expect(notice).toContainText('Slack');
    await notice.getByRole('button', { name: 'Not now' }).click();
    await expect(notice, 'it can be put off').toBeHidden();
    await page.reload();
    await notice.getByRole('button', { name: 'Continue' }).click();
    await expect(page, 'it goes on where it was left').toHaveURL(left);
    await expect(chat.exit, 'with the specialist').toBeEnabled();
    await page.goto(baton.url);
    await expect(page.getByRole('textbox').first()).toBeVisible();
    await expect(notice, 'it is not left any more').toHaveCount(0);
  });

  test('J4: leaving by the button keeps the draft, and the draft can be continued, by mouse', async ({ page, start }) => {
    const baton = await start();
    const chat = await new Chat(page, 'mouse').open(baton.url);
    await chat.say(WISH);
    await chat.answer('Skill Creation Assistant', 'step by step');
    await chat.say('Read the report.');
    await chat.answer('Skill Creation Assistant', 'How should the result look?');
    await chat.exit.click();
    await expect(chat.times(LEFT).first(), 'J4.4').toBeVisible();
    await chat.answer('Assistant', LATER);
    await expect(chat.exit).toBeHidden();
    await page.reload();
    await expect(page.getByText('Welcome back!').first(), 'C-15').toBeVisible();
    await page.getByRole('button', { name: 'Continue' }).click();
    await chat.answer('Skill Creation Assistant', 'Read the report.');
    await expect(chat.exit, 'J4.6').toBeVisible();
  });

  test('J4: the word cancel leaves too, and the draft can be discarded', async ({ page, start }) => {
    const baton = await start();
    const chat = await new Chat(page).open(baton.url);
    await chat.say(WISH);
    await chat.answer('Skill Creation Assistant', 'step by step');
    await chat.say('cancel');
    await chat.answer('Assistant', LATER);
    await page.reload();
    await page.getByRole('button', { name: 'Discard' }).click();
    await expect(page.getByText('Welcome back!')).toBeHidden();
    await page.reload();
    await chat.answer('Assistant', LATER);
    await expect(page.getByText('Welcome back!')).toBeHidden();
    expect((await baton.call('GET', `/api/v1/threads/${chat.threadId}`)).resumable_handoffs).toEqual([]);
  });

  test('the first screen offers prompts that work without a key', async ({ page, start }) => {
    const baton = await start();
    await page.goto(baton.url);
    await expect(page.getByText('No model is configured').first()).toBeVisible();
    await page.getByRole('button', { name: /sends Slack alerts/ }).click();
    await expect(new Chat(page).times(CONNECTING)).toBeVisible();
    await page.goto(baton.url);
    await page.getByRole('button', { name: /documentation and the web/ }).click();
    await new Chat(page).answer('Assistant', /./);
    const group = page.getByRole('button', { name: /2 agents/ }).first();
    await expect(group, 'J3.3: parallel delegation').toBeVisible();
    if ((await group.getAttribute('aria-expanded')) === 'false') await group.click();
    for (const name of ['Knowledge', 'Research']) await expect(page.getByRole('main').getByText(name, { exact: true }).first()).toBeVisible();
  });
});

test.describe('with a scripted model', () => {
  test('J1: the answer streams and names who contributed, by keyboard', async ({ page, startScripted }) => {
    const { baton } = await startScripted();
    const chat = await new Chat(page).open(baton.url);
    await chat.say(QUESTION);
    const answer = await chat.answer('Assistant', 'requests_per_minute');
    await expect(answer.getByRole('table')).toBeVisible();
    await expect(chat.log.getByText('Knowledge').first(), 'J1.4').toBeVisible();
  });

  test('J2: a skill is created with a handoff, by keyboard', async ({ page, startScripted }) => {
    const { baton } = await startScripted();
    await createSkill(page, baton, SCRIPTED, 'keyboard');
  });

  test('J4: leaving works while the holder hangs, by keyboard', async ({ page, startScripted }) => {
    const { baton, provider } = await startScripted();
    const chat = await new Chat(page).open(baton.url);
    await chat.say(WISH);
    await chat.answer('Skill Creation Assistant', 'I know what you want.');
    provider.hanging.add('skill-creator');
    await chat.say('Hm, let me think.');
    await expect(chat.answers('Skill Creation Assistant').last()).toContainText('I was about to');
    await expect(chat.exit).toBeEnabled();
    await chat.exit.focus();
    await page.keyboard.press('Enter');
    await expect(chat.times(LEFT).first()).toBeVisible();
    await chat.answer('Assistant', LATER);
    await expect(chat.exit).toBeHidden();
    provider.hanging.clear();
    await chat.say(QUESTION);
    await chat.answer('Assistant', 'requests_per_minute');
  });
});
