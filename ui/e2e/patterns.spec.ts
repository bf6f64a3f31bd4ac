import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import AxeBuilder from '@axe-core/playwright';
import type { Ask, Says } from './support/provider';
import { expect, test } from './support/test';

const REFUND = 'Where is the refund of my invoice?';
const TWICE = 'The November invoice was charged twice by mistake';
const EUROS = 'May I settle an invoice by bank transfer in euros?';
/** Who asks the same again was not served before. */
const QUESTIONS = [REFUND, REFUND, TWICE, EUROS, EUROS];

const AGENTS = {
  assistant: 'description: Answers first.\nrouter: true\nagents: [support, billing]',
  support: 'description: Broken devices.\ndisplay_name: Support',
  billing: 'description: Invoices and refunds.\ndisplay_name: Billing Desk',
};

/** Routes to support when a question is new, and to billing when it is asked again or clear. */
function router(): (ask: Ask) => Says {
  const seen = new Set([TWICE]);
  return ({ tools, messages }) => {
    if (!tools.includes('route_to')) return { text: 'Here.' };
    const question = QUESTIONS.find((text) => JSON.stringify(messages).includes(text)) ?? '';
    const agent = seen.has(question) ? 'billing' : 'support';
    seen.add(question);
    return { call: ['route_to', { agent, reason: 'It fits' }] };
  };
}

test('insights say which agent serves which questions best, from runs that were made', async ({ page, startScripted }) => {
  test.setTimeout(120_000);
  const agents = mkdtempSync(join(tmpdir(), 'baton-agents-'));
  for (const [name, head] of Object.entries(AGENTS)) writeFileSync(join(agents, `${name}.md`), `---\n${head}\n---\nYou help.\n`);
  const { baton } = await startScripted({ agents, model: router() });
  rmSync(agents, { recursive: true });
  for (const question of QUESTIONS) await baton.say(randomUUID(), question);
  const { insights } = await baton.call('GET', '/api/v1/patterns');
  expect(insights.map((one: { text: string }) => one.text)).toEqual(['billing questions: billing 100% of 3, support 0% of 2']);

  await page.goto(`${baton.url}/patterns`);
  await expect(page.getByRole('heading', { name: 'Who serves what' })).toBeVisible();
  const line = page.getByRole('listitem').filter({ hasText: 'of 3' });
  await expect(line).toHaveText(/^billing questions.*Billing Desk\s*100 %\s*of 3.*Support\s*0 %\s*of 2$/);
  for (const colorScheme of ['light', 'dark'] as const) {
    for (const width of [1280, 320]) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
      await page.setViewportSize({ width, height: 800 });
      await expect(line).toBeVisible();
      if (process.env.SCREENSHOTS) await page.screenshot({ path: join(process.env.SCREENSHOTS, `patterns-${colorScheme}-${width}.png`), fullPage: true });
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      expect(overflow, `${width} px scrolls sideways`).toBeLessThanOrEqual(0);
      const { violations } = await new AxeBuilder({ page }).analyze();
      expect(violations.filter(({ impact }) => impact === 'serious' || impact === 'critical').map(({ id }) => id)).toEqual([]);
    }
  }
});
