import { defineConfig } from '@playwright/test';
import tests from '../../playwright.config';

/** Measures how smooth the page is with a lot of data: `npm run bench`. */
export default defineConfig(tests, { testDir: '.', testMatch: '*.bench.ts', timeout: 240_000, outputDir: '../../test-results/bench' });
