import { defineConfig } from '@playwright/test';
import tests from '../../playwright.config';

/** Measures how smooth the page is with a lot of data: `npm run bench`. No traces are taken, because that is work in the page. */
export default defineConfig(tests, { testDir: '.', testMatch: '*.bench.ts', timeout: 240_000, use: { ...tests.use, trace: 'off' }, outputDir: '../../test-results/bench' });
