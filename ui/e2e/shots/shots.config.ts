import { defineConfig } from '@playwright/test';
import tests from '../../playwright.config';

/** Takes pictures: `npm run shots`. SHOTS=all also takes every screen at two widths in both themes, into e2e/.out/. */
export default defineConfig(tests, { testDir: '.', testMatch: '*.shots.ts', timeout: 300_000, outputDir: '../../test-results/shots' });
