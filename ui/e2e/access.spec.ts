import { Chat } from './support/chat';
import { QUESTION } from './support/journeys';
import { expect, test } from './support/test';

const REQUIRED = '[auth]\nmode = "required"\n';

test.use({ allowed: [/Failed to load resource: the server responded with a status of (401|403|404)/] });

async function signIn(page: import('@playwright/test').Page, key: string) {
  await page.getByLabel('API key').fill(key);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

test('signing in with an API key, for this tab only', async ({ page, context, start }) => {
  const baton = await start({ config: REQUIRED });
  const key = baton.project.key('ada', 'user');
  await page.goto(`${baton.url}/agents`);
  await signIn(page, 'baton_wrong');
  await expect(page.getByText(/not valid|revoked/i).first()).toBeVisible();
  await signIn(page, key);
  await expect(page, 'the same address as before').toHaveURL(/\/agents$/);
  await expect(page.getByText('Skill Creation Assistant').first()).toBeVisible();
  const chat = await new Chat(page).open(baton.url);
  await chat.say(QUESTION);
  await chat.answer('Assistant', 'requests_per_minute');
  await page.reload();
  await chat.answer('Assistant', 'requests_per_minute');
  const other = await context.newPage();
  await other.goto(baton.url);
  await expect(other.getByLabel('API key'), 'another tab signs in again').toBeVisible();
  await page.getByRole('button', { name: /sign out/i }).click();
  await expect(page.getByLabel('API key')).toBeVisible();
});

test("a viewer reads and does not write; a foreign thread does not exist", async ({ page, start }) => {
  const baton = await start({ config: REQUIRED });
  const [ada, vera] = [baton.project.key('ada', 'user'), baton.project.key('vera', 'viewer')];
  const thread = '7b0f6d6e-3f7b-4b1c-9a51-0d6a1f4a5c11';
  await baton.say(thread, QUESTION, ada);
  await page.goto(baton.url);
  await signIn(page, vera);
  await expect(page.getByText('Ada').or(page.getByRole('navigation').first())).toBeVisible();
  await expect(page.getByRole('textbox', { name: 'Message', exact: true })).toBeHidden();
  await expect(page.getByRole('link', { name: /New conversation/ })).toBeHidden();
  for (const name of ['Usage', 'Audit', 'Patterns']) await expect(page.getByRole('link', { name, exact: true })).toBeHidden();
  await expect(page.getByRole('link', { name: 'Agents', exact: true })).toBeVisible();
  await page.goto(`${baton.url}/audit`);
  await expect(page.getByText('audit:read').first(), 'a refusal names the permission').toBeVisible();
  await page.goto(`${baton.url}/threads/${thread}`);
  await expect(page.getByText(/does not exist or belongs to someone else/)).toBeVisible();
  await expect(page.getByText(QUESTION)).toHaveCount(0);
});

test('a key that is revoked while the page is open leads to the sign-in page', async ({ page, start }) => {
  const baton = await start({ config: REQUIRED });
  const key = baton.project.key('ada', 'user');
  await page.goto(baton.url);
  await signIn(page, key);
  await expect(new Chat(page).message).toBeVisible();
  const { data: [{ key_id }] } = JSON.parse(baton.project.run('keys', 'list', '--tenant', 'acme', '--json'));
  baton.project.run('keys', 'revoke', key_id);
  await expect(page.getByLabel('API key')).toBeVisible({ timeout: 30_000 });
});
