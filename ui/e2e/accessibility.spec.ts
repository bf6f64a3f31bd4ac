import AxeBuilder from '@axe-core/playwright';
import { address, fill } from './support/data';
import { SCREENS } from './support/screens';
import { expect, test } from './support/test';

for (const theme of ['light', 'dark'] as const) {
  test(`axe finds nothing serious on any screen (${theme})`, async ({ page, start }) => {
    test.setTimeout(240_000);
    const baton = await start();
    const { run } = await fill(baton);
    await page.emulateMedia({ colorScheme: theme, reducedMotion: 'reduce' });
    for (const [name, path] of SCREENS) {
      await page.goto(baton.url + address(path, run));
      await page.waitForLoadState('load');
      await expect(page.getByRole('status', { name: 'Loading' })).toHaveCount(0);
      const { violations } = await new AxeBuilder({ page }).analyze();
      const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
      expect(serious.map(({ id, nodes }) => `${name}: ${id} ${nodes.map((node) => node.target).join(' ')}`)).toEqual([]);
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      expect(overflow, `${name} scrolls sideways`).toBeLessThanOrEqual(0);
    }
  });
}

test('nothing scrolls sideways at 320 px', async ({ page, start }) => {
  test.setTimeout(240_000);
  const baton = await start();
  const { run } = await fill(baton);
  await page.setViewportSize({ width: 320, height: 640 });
  for (const [name, path] of SCREENS) {
    await page.goto(baton.url + address(path, run));
    await expect(page.getByRole('status', { name: 'Loading' })).toHaveCount(0);
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    expect(overflow, `${name} scrolls sideways`).toBeLessThanOrEqual(0);
  }
});
