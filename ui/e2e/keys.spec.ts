import { expect, test } from './support/test';

const REQUIRED = '[auth]\nmode = "required"\n';

test.use({ allowed: [/Failed to load resource: the server responded with a status of (400|401|403)/] });

async function signIn(page: import('@playwright/test').Page, key: string) {
  await page.getByLabel('API key').fill(key);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

test('a key is created, shown once, used and revoked', async ({ page, context, start }) => {
  const baton = await start({ config: REQUIRED });
  await page.goto(`${baton.url}/keys`);
  await signIn(page, baton.project.key('root', 'admin'));
  await page.getByRole('button', { name: 'Create key' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Name').fill('nightly export');
  await dialog.getByLabel('User', { exact: true }).fill('bot');
  await dialog.getByLabel('Only these permissions').fill('audit:read');
  await dialog.getByRole('button', { name: 'Create', exact: true }).click();
  await expect(dialog.getByText('the roles of the key do not grant this permission'), 'a mistake is shown at its field').toBeVisible();
  await dialog.getByLabel('Only these permissions').fill('thread:read');
  await dialog.getByRole('button', { name: 'Create', exact: true }).click();
  const key = await dialog.getByTestId('new-key').innerText();
  expect(key).toMatch(/^baton_/);
  await dialog.getByRole('button', { name: 'Done' }).click();
  const row = page.getByRole('row', { name: /nightly export/ });
  await expect(row.getByRole('cell', { name: /only thread:read/ })).toBeVisible();
  await expect(row.getByText('Active')).toBeVisible();
  await expect(page.getByText(key), 'it is not shown again').toHaveCount(0);

  const other = await context.newPage();
  await other.goto(`${baton.url}/keys`);
  await signIn(other, key);
  await expect(other.getByText('admin:keys').first(), 'the new key may not manage keys').toBeVisible();

  await row.getByRole('button', { name: 'Revoke nightly export' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke', exact: true }).click();
  await expect(row.getByText('Revoked')).toBeVisible();
  await expect(row.getByRole('button', { name: /Revoke/ })).toHaveCount(0);
  await other.reload();
  await expect(other.getByLabel('API key')).toBeVisible({ timeout: 30_000 });
  const trail = baton.project.run('audit', '--tenant', 'acme', '--json');
  expect(trail).toContain('key.create');
  expect(trail).toContain('key.revoke');
});
