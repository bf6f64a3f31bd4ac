import { test as base, type Page } from '@playwright/test';
import { Baton } from './baton';
import { scripted } from './journeys';
import { Project } from './project';
import { Provider, type Ask, type Says } from './provider';

export { expect } from '@playwright/test';

interface Started { baton: Baton; provider?: Provider }
interface Options { config?: string; model?: (ask: Ask) => Says; agents?: string }

interface Fixtures {
  /** Starts a server of its own; it ends with the test. */
  start: (options?: Options) => Promise<Baton>;
  /** The same with a scripted model behind the OpenAI protocol. */
  startScripted: (options?: Options) => Promise<{ baton: Baton; provider: Provider }>;
  /** Messages of the browser's console that are allowed in this test, such as those of requests that are refused on purpose. */
  allowed: RegExp[];
}

/**
 * Every page is watched: an error in its console or a request to another origin fails the test.
 */
export const test = base.extend<Fixtures & { servers: Started[] }>({
  allowed: [[], { option: true }],
  servers: async ({}, use) => {
    const started: Started[] = [];
    await use(started);
    for (const { baton, provider } of started) {
      await baton.stop();
      await provider?.stop();
    }
  },
  start: async ({ servers }, use) => {
    await use(async (options = {}) => {
      const baton = await Baton.start(projectOf(options));
      servers.push({ baton });
      return baton;
    });
  },
  startScripted: async ({ servers }, use) => {
    await use(async (options = {}) => {
      const provider = await Provider.start(options.model ?? scripted);
      const baton = await Baton.start(projectOf({ ...options, config: (options.config ?? '') + provider.config }));
      servers.push({ baton, provider });
      return { baton, provider };
    });
  },
  // The servers come first, so that they outlive the pages: a stream that is cut at the end would be an error in the console.
  context: async ({ servers, context, allowed }, use) => {
    void servers;
    const problems: string[] = [];
    context.on('page', (page) => watch(page, problems, allowed));
    await use(context);
    base.expect(problems, 'console errors and requests to other origins').toEqual([]);
  },
});

function projectOf({ config, agents }: Options): Project {
  return new Project(config, agents ? { agents } : {});
}

function watch(page: Page, problems: string[], allowed: RegExp[]): void {
  const note = (text: string) => allowed.some((pattern) => pattern.test(text)) || problems.push(text);
  page.on('console', (message) => message.type() === 'error' && note(message.text()));
  page.on('pageerror', (error) => note(String(error)));
  page.on('request', (request) => {
    const { protocol, hostname } = new URL(request.url());
    if (protocol.startsWith('http') && hostname !== '127.0.0.1') note(`a request to ${request.url()}`);
  });
}
