import { fileURLToPath } from 'node:url';
import AxeBuilder from '@axe-core/playwright';
import type { Page } from '@playwright/test';
import { agentsFolder, DONE, NOT_DONE, PLAN, WRITE, writing } from './support/approvals';
import { Chat } from './support/chat';
import type { Ask } from './support/provider';
import { expect, test } from './support/test';

const card = (page: Page, name: RegExp | string) => page.getByRole('article', { name });
const WRITE_FILE = /Allow write_file/;
const QUESTION = 'Which day suits you?';
// Agents may be called without a question here: what waits is the file.
const CONFIG = '[approvals]\nask_at = "high"\n';

const setUp = (startScripted: (options: object) => Promise<any>) => startScripted({ model: writing, agents: agentsFolder(), config: CONFIG });

test.describe('while the server is gone', () => {
  test.use({ allowed: [/ERR_|Failed to load resource/] });

  test('a call three levels deep waits through SIGKILL, is approved by click, and happens once', async ({ page, startScripted }) => {
    const { baton, provider } = await setUp(startScripted);
    const chat = await new Chat(page).open(baton.url);
    await chat.say(WRITE);
    await expect(card(page, WRITE_FILE)).toBeVisible();
    await expect(card(page, WRITE_FILE).getByLabel('Asked through Assistant, then Lead, then Writer'), 'F21: the path in words').toBeVisible();
    await expect(card(page, WRITE_FILE).getByText('notes.md')).toBeVisible();
    await expect(page.getByText('Waiting for 1 decision'), 'not finished and not failed').toBeVisible();
    await expect(page).toHaveTitle(/^\(1\) /);
    const asked = provider.asked.length;
    expect(() => baton.project.read('notes.md')).toThrow();

    await baton.kill('SIGKILL');
    await baton.start();
    await page.reload();
    await expect(card(page, WRITE_FILE), 'it is still there').toBeVisible();
    await card(page, WRITE_FILE).getByRole('button', { name: 'Approve', exact: true }).click();
    await chat.answer('Assistant', DONE);
    await expect(page.getByText(/write_file was approved by you/)).toBeVisible();
    await expect(page).not.toHaveTitle(/^\(/);
    expect(baton.project.read('notes.md')).toBe('Rate limits are 600 a minute.\n');
    expect(provider.asked.length - asked, 'one turn of each level, nothing is repeated').toBe(3);
    const { data } = await baton.call('GET', `/api/v1/runs?thread_id=${chat.threadId}`);
    expect(data.map((run: any) => run.status)).toEqual(['completed']);

    await page.reload();
    await chat.answer('Assistant', DONE);
    await expect(page.getByText(/write_file was approved by you/), 'the decision stays in the conversation').toBeVisible();
  });
});

test('long arguments scroll and are whole, also if they look cut', async ({ page, startScripted }) => {
  const content = `${'One more line.\n'.repeat(80)}The last line is \u202ehidden…`;
  const { baton } = await startScripted({ agents: agentsFolder(), config: CONFIG, model: (ask: Ask) => {
    const says = writing(ask);
    return says.call?.[0] === 'write_file' ? { call: ['write_file', { path: 'notes.md…', content }] } : says;
  } });
  const chat = await new Chat(page).open(baton.url);
  await chat.say(WRITE);
  const box = card(page, WRITE_FILE).getByRole('region', { name: 'Arguments' });
  await expect(box.getByText('notes.md…')).toBeVisible();
  await expect(box).toContainText(/The last line is \\u202ehidden…$/);
  await expect(card(page, WRITE_FILE).getByText('Scroll to read all arguments.')).toBeVisible();
  await box.focus();
  await page.keyboard.press('End');
  await expect.poll(() => box.evaluate((element) => element.scrollHeight - element.clientHeight - element.scrollTop)).toBeLessThan(2);
  const { violations } = await new AxeBuilder({ page }).analyze();
  expect(violations.filter(({ impact }) => impact === 'serious' || impact === 'critical').map(({ id }) => id)).toEqual([]);
});

test('a call is denied with a reason, and the agent goes on', async ({ page, startScripted }) => {
  const { baton } = await setUp(startScripted);
  const chat = await new Chat(page).open(baton.url);
  await chat.say(WRITE);
  await card(page, WRITE_FILE).getByRole('button', { name: 'Deny' }).click();
  await expect(page.getByRole('textbox', { name: 'Reason' })).toBeFocused();
  await page.keyboard.type('Not today');
  await card(page, WRITE_FILE).getByRole('button', { name: 'Deny the call' }).click();
  await chat.answer('Assistant', NOT_DONE);
  await expect(page.getByText(/write_file was denied by you: Not today/)).toBeVisible();
  expect(() => baton.project.read('notes.md')).toThrow();
});

test('a call is approved with changes, by keyboard, for this call only', async ({ page, startScripted }) => {
  const { baton } = await setUp(startScripted);
  const chat = await new Chat(page).open(baton.url);
  await chat.say(WRITE);
  await card(page, WRITE_FILE).getByRole('checkbox').focus();
  await page.keyboard.press('Space');
  await page.keyboard.press('Shift+Tab');
  await page.keyboard.press('Shift+Tab');
  await expect(card(page, WRITE_FILE).getByRole('button', { name: 'Edit' })).toBeFocused();
  await page.keyboard.press('Enter');
  const path = card(page, WRITE_FILE).getByRole('textbox', { name: 'path' });
  await path.fill('');
  await path.press('Enter');
  await expect(card(page, WRITE_FILE).getByText('This is required.')).toBeVisible();
  await path.fill('changed.md');
  await path.press('Enter');
  await chat.answer('Assistant', DONE);
  await expect(page.getByText('write_file was approved by you with changes', { exact: true })).toBeVisible();
  expect(baton.project.read('changed.md')).toContain('600 a minute');
  await chat.say(WRITE);
  await expect(card(page, WRITE_FILE), 'other arguments are not remembered').toBeVisible();
});

test('a decision is remembered, and revoked in the inbox', async ({ page, context, startScripted }) => {
  const { baton } = await setUp(startScripted);
  const chat = await new Chat(page).open(baton.url);
  await chat.say(WRITE);
  await card(page, WRITE_FILE).getByRole('checkbox').check();
  await card(page, WRITE_FILE).getByRole('button', { name: 'Approve', exact: true }).click();
  await expect(page.getByText(/write_file was approved by you, for the rest of this conversation/)).toBeVisible();
  await chat.answer('Assistant', DONE);
  await chat.say(WRITE);
  await expect(chat.answers('Assistant')).toHaveCount(2);
  await expect(card(page, WRITE_FILE), 'not asked again').toHaveCount(0);
  const inbox = await context.newPage();
  await inbox.goto(`${baton.url}/inbox`);
  await inbox.getByRole('tab', { name: 'Decided' }).click();
  await inbox.getByRole('button', { name: 'Ask again' }).click();
  await expect(inbox.getByRole('button', { name: 'Ask again' })).toHaveCount(0);
  await chat.say(WRITE);
  await expect(card(page, WRITE_FILE)).toBeVisible();
});

test('what a workflow asks is answered by its choices, by typing and in the inbox', async ({ page, context, start }) => {
  const agents = fileURLToPath(new URL('../../examples/workflow/agents', import.meta.url));
  const baton = await start({ agents, config: '[agents]\nmain = "shop-assistant"\n' });
  const chat = await new Chat(page).open(baton.url);
  await chat.say('I want to return a kettle');
  await expect(chat.answers('Returns Desk').last()).toContainText('What is the order number?');
  await expect(page.getByRole('article', { name: /order number/ }), 'the message asks already').toHaveCount(0);
  await expect(page, 'and the title does not count it here').not.toHaveTitle(/^\(/);
  const inbox = await context.newPage();
  await inbox.goto(`${baton.url}/inbox`);
  await expect(inbox).toHaveTitle('(1) Inbox · Baton');
  await card(inbox, /order number/).getByRole('textbox').fill('R-1024');
  await inbox.keyboard.press('Enter');
  await expect(inbox.getByText('Answered by you: R-1024')).toBeVisible();
  await expect(chat.answers('Returns Desk').last(), 'the conversation goes on').toContainText('Which article');
  await expect(page.getByText('R-1024', { exact: true }), 'with the answer as a message').toBeVisible();
  await chat.say('the kettle');
  await card(page, /Why would you like/).getByRole('button', { name: 'wrong article' }).click();
  await expect(chat.answers('Returns Desk').last()).toContainText('Has the package been opened?');
  await expect(card(page, /Why would you like/)).toHaveCount(0);
});

test('a question is answered by a choice and by typing', async ({ page, startScripted }) => {
  const { baton } = await setUp(startScripted);
  const chat = await new Chat(page).open(baton.url);
  await chat.say(PLAN);
  await card(page, QUESTION).getByRole('button', { name: 'Tuesday' }).click();
  await chat.answer('Assistant', 'The meeting is on Tuesday.');
  await chat.say(PLAN);
  await card(page, QUESTION).getByRole('textbox', { name: 'Another answer' }).fill('Sunday');
  await page.keyboard.press('Enter');
  await chat.answer('Assistant', 'The meeting is on Sunday.');
  await chat.say(PLAN);
  await expect(card(page, QUESTION)).toBeVisible();
  await expect(chat.message).toHaveAttribute('placeholder', 'Answer Assistant');
  await chat.say('Monday');
  await chat.answer('Assistant', 'The meeting is on Monday.');
  await expect(card(page, QUESTION)).toHaveCount(0);
});

test('the inbox shows what waits, counts it in the title, and decides; another tab sees it', async ({ page, context, startScripted }) => {
  const { baton } = await setUp(startScripted);
  const chat = await new Chat(page).open(baton.url);
  await chat.say(WRITE);
  await expect(card(page, WRITE_FILE)).toBeVisible();
  const inbox = await context.newPage();
  await inbox.goto(`${baton.url}/inbox`);
  await expect(inbox).toHaveTitle('(1) Inbox · Baton');
  await expect(inbox.getByRole('link', { name: /Inbox 1 waiting/ })).toBeVisible();
  await card(inbox, WRITE_FILE).getByRole('button', { name: 'Approve', exact: true }).click();
  await expect(inbox.getByText(/write_file was approved by you/)).toBeVisible();
  await expect(inbox).toHaveTitle('Inbox · Baton');
  await chat.answer('Assistant', DONE);
  await expect(card(page, WRITE_FILE), 'the conversation follows by its events').toHaveCount(0);
  await inbox.getByRole('tab', { name: 'Decided' }).click();
  await expect(inbox.getByRole('row', { name: /write_file/ })).toContainText('Approved');
});

test.describe('decided elsewhere', () => {
  test.use({ allowed: [/status of 409/] });

  test('a decision that comes too late says so', async ({ page, startScripted }) => {
    const { baton } = await setUp(startScripted);
    const chat = await new Chat(page).open(baton.url);
    await chat.say(WRITE);
    await expect(card(page, WRITE_FILE)).toBeVisible();
    const inbox = await page.context().newPage();
    await inbox.goto(`${baton.url}/inbox`);
    await expect(card(inbox, WRITE_FILE)).toBeVisible();
    const { data: [open] } = await baton.call('GET', '/api/v1/approvals?status=pending');
    // The list is not read again before the click, as on a slow connection.
    await inbox.route('**/api/v1/approvals?**', () => new Promise(() => {}));
    await baton.call('POST', `/api/v1/approvals/${open.approval_id}`, { decision: 'deny', reason: 'elsewhere' });
    await card(inbox, WRITE_FILE).getByRole('button', { name: 'Approve', exact: true }).click();
    await expect(inbox.getByText('Someone else decided this before you.')).toBeVisible();
    expect(() => baton.project.read('notes.md')).toThrow();
  });
});

for (const theme of ['light', 'dark'] as const) {
  test(`cards and forms are accessible (${theme}), and fit 320 px`, async ({ page, startScripted }) => {
    test.setTimeout(120_000);
    const { baton } = await setUp(startScripted);
    await page.emulateMedia({ colorScheme: theme, reducedMotion: 'reduce' });
    const chat = await new Chat(page).open(baton.url);
    await chat.say(WRITE);
    await expect(card(page, WRITE_FILE)).toBeVisible();
    const check = async (what: string) => {
      const { violations } = await new AxeBuilder({ page }).analyze();
      expect(violations.filter(({ impact }) => impact === 'serious' || impact === 'critical').map(({ id, nodes }) => `${what}: ${id} ${nodes.map((node) => node.target).join(' ')}`)).toEqual([]);
      for (const width of [1280, 320]) {
        await page.setViewportSize({ width, height: 800 });
        const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
        expect(overflow, `${what} scrolls sideways at ${width}`).toBeLessThanOrEqual(0);
      }
      await page.setViewportSize({ width: 1280, height: 800 });
    };
    await check('the card');
    await card(page, WRITE_FILE).getByRole('button', { name: 'Edit' }).click();
    await check('the form');
    await card(page, WRITE_FILE).getByRole('button', { name: 'Back' }).click();
    await card(page, WRITE_FILE).getByRole('button', { name: 'Deny' }).click();
    await check('the refusal');
    await page.goto(`${baton.url}/inbox`);
    await expect(card(page, WRITE_FILE)).toBeVisible();
    await check('the inbox');
    await card(page, WRITE_FILE).getByRole('button', { name: 'Approve', exact: true }).click();
    await expect(page.getByText(/write_file was approved/)).toBeVisible();
    await check('the outcome');
    const other = await new Chat(page).open(baton.url);
    await other.say(PLAN);
    await expect(card(page, QUESTION)).toBeVisible();
    await check('the question');
  });
}
