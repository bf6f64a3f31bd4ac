import { Chat } from './support/chat';
import { QUESTION } from './support/journeys';
import { expect, test } from './support/test';

test('a thread is renamed, found, opened by the palette and deleted', async ({ page, start }) => {
  const baton = await start();
  const chat = await new Chat(page).open(baton.url);
  await chat.say(QUESTION);
  await chat.answer('Assistant', 'requests_per_minute');
  const list = page.getByRole('region', { name: 'Conversations' });
  // The menu of a row appears with the pointer or the focus.
  const actions = async () => {
    await list.getByRole('listitem').first().hover();
    await list.getByRole('button', { name: /^Actions for/ }).click();
  };
  await actions();
  await page.getByRole('menuitem', { name: 'Rename' }).click();
  await page.getByRole('textbox', { name: 'New title' }).fill('Limits עברית');
  await page.keyboard.press('Enter');
  await expect(list.getByText('Limits עברית')).toBeVisible();
  await expect(page.getByRole('main').getByText('Limits עברית').first(), 'in the header too').toBeVisible();
  await page.getByRole('searchbox', { name: 'Search conversations' }).fill('nothing like this');
  await expect(list.getByText('Limits עברית')).toBeHidden();
  await page.getByRole('searchbox', { name: 'Search conversations' }).fill('LIMITS');
  await expect(list.getByText('Limits עברית')).toBeVisible();
  await page.goto(`${baton.url}/agents`);
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox').fill('limits');
  await page.getByRole('option', { name: /Limits/ }).first().waitFor();
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(/\/threads\//);
  await actions();
  await page.getByRole('menuitem', { name: 'Delete' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  await expect(page).toHaveURL(/\/$/);
  await expect(list.getByText('Limits עברית')).toBeHidden();
  expect((await baton.call('GET', '/api/v1/threads')).data).toEqual([]);
});

test('a file is attached, sent and downloaded', async ({ page, start }) => {
  const baton = await start();
  const chat = await new Chat(page).open(baton.url);
  await page.getByLabel('Files', { exact: true }).setInputFiles({ name: 'report.txt', mimeType: 'text/plain', buffer: Buffer.from('All is well.') });
  await expect(page.getByText('report.txt')).toBeVisible();
  await chat.say('Read this report');
  await expect(chat.answers('You').getByText('report.txt')).toBeVisible();
  // A reload between the upload and the message would lose the message.
  await expect(chat.answers('Assistant').first()).toBeVisible();
  await page.reload();
  const download = page.waitForEvent('download');
  await chat.answers('You').getByRole('button', { name: 'Download report.txt' }).click();
  expect((await download).suggestedFilename()).toBe('report.txt');
});

// D8: an image that a tool reads is shown with the answer while it arrives and after a reload, and can be saved.
test('an image of a tool is shown with the answer and downloaded', async ({ page, startScripted }) => {
  const { baton } = await startScripted({ model: ({ last }) => (last.includes('chart.png is an image') ? { text: 'Here is the chart.' } : { call: ['read_file', { path: 'chart.png' }] }) });
  const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
  baton.project.write('chart.png', Buffer.from(pixel, 'base64'));
  const chat = await new Chat(page).open(baton.url);
  await chat.message.pressSequentially('@kno');
  await expect(page.getByRole('option', { name: /Knowledge/ })).toBeVisible();
  await page.keyboard.press('Enter');
  await chat.message.pressSequentially('Show me the chart');
  await page.keyboard.press('Enter');
  const answer = await chat.answer('Knowledge', 'Here is the chart.');
  const image = answer.getByRole('img', { name: 'chart.png' });
  for (const when of ['with the answer', 'after a reload']) {
    await expect.poll(() => image.evaluate((element: HTMLImageElement) => element.naturalWidth), when).toBe(1);
    await page.reload();
  }
  const download = page.waitForEvent('download');
  await answer.getByRole('button', { name: 'Download chart.png' }).click();
  expect((await download).suggestedFilename()).toBe('chart.png');
});

test('an agent is asked by its name, with the keyboard', async ({ page, start }) => {
  const baton = await start();
  const chat = await new Chat(page).open(baton.url);
  await chat.message.pressSequentially('@kno');
  await expect(page.getByRole('option', { name: /Knowledge/ })).toBeVisible();
  await page.keyboard.press('Enter');
  await chat.message.pressSequentially('How do I configure rate limiting?');
  await page.keyboard.press('Enter');
  await chat.answer('Knowledge', 'requests_per_minute');
});

test('an answer is rated, and a message is edited and sent again', async ({ page, start }) => {
  const baton = await start();
  const chat = await new Chat(page).open(baton.url);
  await chat.say('How do I configure rate limits?');
  const answer = await chat.answer('Assistant', 'requests_per_minute');
  await answer.hover();
  await answer.getByRole('button', { name: 'Good answer' }).click();
  await expect(answer.getByRole('button', { name: 'Good answer' })).toHaveAttribute('aria-pressed', 'true');
  await page.reload();
  await expect(chat.answers('Assistant').first().getByRole('button', { name: 'Good answer' }), 'it is kept').toHaveAttribute('aria-pressed', 'true');
  await chat.answers('You').first().hover();
  await chat.answers('You').first().getByRole('button', { name: /Edit/ }).click();
  await page.keyboard.press('End');
  await page.keyboard.type(' Please.');
  await page.keyboard.press('Enter');
  await expect(chat.answers('You').filter({ hasText: 'Please.' })).toBeVisible();
  await expect(chat.answers('Assistant')).toHaveCount(2);
});

test('text from people and models is never HTML', async ({ page, startScripted }) => {
  const hostile = '<img src=x onerror="document.title=1"><script>document.title=2</script> [a](javascript:alert(1)) ![b](https://example.com/x.png)';
  const { baton } = await startScripted({ model: () => ({ text: hostile }) });
  const chat = await new Chat(page).open(baton.url);
  await chat.say(hostile);
  await chat.answer('Assistant', /another server/);
  await expect(page.locator('main script, main img')).toHaveCount(0);
  await expect(page.locator('a[href^="javascript"]')).toHaveCount(0);
  expect(await page.title()).not.toMatch(/^[12]$/);
});

test('the theme is kept', async ({ page, start }) => {
  const baton = await start();
  await page.goto(baton.url);
  await page.getByRole('radio', { name: /dark/i }).check({ force: true });
  await expect(page.locator('html')).toHaveAttribute('data-theme', 'dark');
  await page.reload();
  await expect(page.locator('html')).toHaveAttribute('data-theme', 'dark');
});
