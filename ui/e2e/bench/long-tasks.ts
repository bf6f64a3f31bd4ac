import type { Page } from '@playwright/test';

/** What a person may feel as a jolt. */
export const LIMIT_MS = 200;

/** Notes every task of the main thread that takes longer than 50 ms, from before the page's own code runs. */
export async function observeLongTasks(page: Page): Promise<void> {
  await page.addInitScript(() => {
    const tasks: number[] = [];
    Object.assign(globalThis, { longTasks: tasks });
    new PerformanceObserver((list) => tasks.push(...list.getEntries().map((entry) => entry.duration))).observe({ type: 'longtask' });
  });
}

/** Forgets what was noted so far, such as the first drawing of the page. */
export async function resetLongTasks(page: Page): Promise<void> {
  await page.evaluate(() => ((globalThis as unknown as { longTasks: number[] }).longTasks.length = 0));
}

export async function longestTask(page: Page): Promise<number> {
  return page.evaluate(() => Math.max(0, ...(globalThis as unknown as { longTasks: number[] }).longTasks));
}

export function report(what: string, ms: number): void {
  const verdict = ms <= LIMIT_MS ? 'ok' : 'TOO LONG';
  console.log(`${what.padEnd(52)} longest task ${ms.toFixed(0).padStart(5)} ms   goal ≤ ${LIMIT_MS} ms   ${verdict}`);
}
