import { Chat } from './support/chat';
import { QUESTION } from './support/journeys';
import { expect, test } from './support/test';

const ASK = 'Give me a long answer';
const FIRST = 'Sentence 1 of';
const LAST = 'Sentence 60 of a long answer.';

test('a reload in the middle of an answer shows the same text and continues', async ({ page, startScripted }) => {
  const { baton, provider } = await startScripted();
  const release = provider.pause();
  const chat = await new Chat(page).open(baton.url);
  await chat.say(ASK);
  await expect(chat.answers('Assistant').last()).toContainText(FIRST);
  await page.reload();
  await expect(chat.answers('Assistant').last(), 'the same after the reload').toContainText(FIRST);
  await expect(chat.times(ASK)).toHaveCount(2);
  release();
  const answer = await chat.answer('Assistant', LAST);
  expect(((await answer.textContent()) ?? '').split(FIRST).length - 1, 'nothing twice').toBe(1);
  await expect(chat.answers('Assistant')).toHaveCount(1);
});

test.describe('while the server is gone', () => {
  test.use({ allowed: [/ERR_|Failed to load resource/] });

  test('a server that is killed and restarted during an answer loses nothing', async ({ page, startScripted }) => {
    const { baton, provider } = await startScripted();
    const release = provider.pause();
    const chat = await new Chat(page).open(baton.url);
    await chat.say(ASK);
    await expect(chat.answers('Assistant').last()).toContainText(FIRST);
    await baton.kill('SIGKILL');
    await expect(page.getByText(/Reconnecting/).first(), 'after five seconds').toBeVisible();
    release();
    await baton.start();
    const answer = await chat.answer('Assistant', LAST);
    await expect(page.getByText(/Reconnecting/)).toBeHidden();
    expect(((await answer.textContent()) ?? '').split(FIRST).length - 1, 'the cut text is gone').toBe(1);
    await expect(chat.answers('Assistant')).toHaveCount(1);
    await chat.say(QUESTION);
    await chat.answer('Assistant', 'requests_per_minute');
  });

  test('a message that cannot be sent is kept and sent again', async ({ page, start }) => {
    const baton = await start();
    const chat = await new Chat(page).open(baton.url);
    await chat.say('Hello');
    await chat.answer('Assistant', /./);
    await baton.kill('SIGKILL');
    await chat.say(QUESTION);
    await expect(page.getByText(/Not sent/)).toBeVisible();
    await baton.start();
    await page.getByRole('button', { name: 'Retry', exact: true }).click();
    await chat.answer('Assistant', 'requests_per_minute');
    await expect(page.getByText(/Not sent/)).toBeHidden();
  });
});

test('two tabs of one thread show the same', async ({ page, context, startScripted }) => {
  const { baton, provider } = await startScripted();
  const chat = await new Chat(page).open(baton.url);
  await chat.say(QUESTION);
  await chat.answer('Assistant', 'requests_per_minute');
  const other = await new Chat(await context.newPage()).open(page.url());
  await other.answer('Assistant', 'requests_per_minute');
  const release = provider.pause();
  await other.say(ASK);
  await expect(chat.answers('Assistant').last()).toContainText(FIRST);
  await expect(chat.log.getByRole('article', { name: 'You' }).filter({ hasText: ASK }), 'the message of the other tab').toHaveCount(1);
  await chat.say('And this one waits');
  await expect(chat.log.getByText('Queued'), 'a message behind the running answer').toBeVisible();
  release();
  await chat.answer('Assistant', LAST);
  await other.answer('Assistant', LAST);
  await expect(chat.log.getByText('Queued')).toBeHidden();
  await expect(other.log.getByText('And this one waits')).toBeVisible();
});

test('the stop button ends an answer', async ({ page, startScripted }) => {
  const { baton, provider } = await startScripted();
  provider.pause();
  const chat = await new Chat(page).open(baton.url);
  await chat.say(ASK);
  await expect(chat.answers('Assistant').last()).toContainText(FIRST);
  await page.getByRole('button', { name: /^Stop/ }).click();
  await expect(page.getByRole('button', { name: /^Stop/ })).toBeHidden();
  await expect.poll(async () => (await baton.call('GET', '/api/v1/runs?limit=1')).data[0].status).toBe('cancelled');
});
