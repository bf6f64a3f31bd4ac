import { fileURLToPath } from 'node:url';
import { address, fill } from '../support/data';
import { SCREENS } from '../support/screens';
import { expect, test } from '../support/test';

const out = fileURLToPath(new URL('../.out/', import.meta.url));

for (const theme of ['light', 'dark'] as const) {
  for (const width of [1280, 375]) {
    test(`every screen, ${theme}, ${width} px`, async ({ page, start }) => {
      test.skip(process.env.SHOTS !== 'all', 'only with SHOTS=all');
      const baton = await start();
      const { run } = await fill(baton);
      await page.setViewportSize({ width, height: 800 });
      await page.emulateMedia({ colorScheme: theme, reducedMotion: 'reduce' });
      for (const [name, path] of SCREENS) {
        await page.goto(baton.url + address(path, run));
        await expect(page.getByRole('status', { name: 'Loading' })).toHaveCount(0);
        await page.waitForTimeout(400);
        await page.screenshot({ path: `${out}${name}-${width}-${theme}.png` });
      }
    });
  }
}
