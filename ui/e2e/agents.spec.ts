import { Chat } from './support/chat';
import { expect, test } from './support/test';

test('a broken agent file is reported with its line while the last good version answers', async ({ page, start }) => {
  const baton = await start();
  await page.goto(`${baton.url}/agents`);
  await expect(page.getByText('Skill Creation Assistant').first()).toBeVisible();
  const good = baton.project.read('agents/assistant.md');
  baton.project.write('agents/assistant.md', good.replace('agents: [knowledge, research]', 'agents: [knowledge, reserch]'));
  await expect(page.getByText(/last good version is active/i).first()).toBeVisible({ timeout: 20_000 });
  await expect(page.getByText('reserch').first()).toBeVisible();
  await expect(page.getByText(/agents\/assistant\.md:5/).first(), 'with file and line').toBeVisible();
  await expect(page.getByText(/did you mean `?research/i).first()).toBeVisible();
  const chat = await new Chat(page).open(baton.url);
  await expect(page.getByText(/last good version is active/i).first(), 'everywhere').toBeVisible();
  await chat.say('How do I configure rate limiting?');
  await chat.answer('Assistant', 'requests_per_minute');
  baton.project.write('agents/assistant.md', good);
  await expect(page.getByText(/last good version is active/i)).toBeHidden({ timeout: 20_000 });
});

test('an agent can be looked at and tried', async ({ page, start }) => {
  const baton = await start();
  await page.goto(`${baton.url}/agents`);
  await page.getByRole('link', { name: /Knowledge/ }).first().click();
  await expect(page).toHaveURL(/\/agents\/knowledge/);
  await page.getByRole('tab', { name: 'Prompt' }).click();
  await expect(page.getByText('You are the documentation specialist').first()).toBeVisible();
  await page.getByRole('tab', { name: 'Try it' }).click();
  await page.getByRole('textbox', { name: /message/i }).fill('How do I configure rate limiting?');
  await page.getByRole('button', { name: /^(Send|Ask)/ }).click();
  await expect(page.getByText('requests_per_minute').first()).toBeVisible();
});

test('the graph shows the agents and their edges, also as a list', async ({ page, start }) => {
  const baton = await start();
  await page.goto(`${baton.url}/graph`);
  await expect(page.locator('.react-flow__node')).toHaveCount(6);
  await page.goto(`${baton.url}/graph?view=list`);
  await expect(page.getByRole('table').getByText('Skill Creation Assistant').first()).toBeVisible();
});
