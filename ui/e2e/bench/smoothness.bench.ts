import { LONG } from '../support/journeys';
import type { Ask, Says } from '../support/provider';
import { expect, test } from '../support/test';
import { LIMIT_MS, longestTask, observeLongTasks, report, resetLongTasks } from './long-tasks';

const THREAD = '550e8400-e29b-41d4-a716-446655440000';
const WIDTH = 49;

/** Answers long when asked so, asks everybody when asked so, and otherwise in one sentence with some Markdown. */
function model({ last, isTool, system }: Ask): Says {
  if (system.includes('You are a worker')) return { text: 'This part is **done**.' };
  if (isTool) return { text: LONG };
  if (last.includes('everybody')) return { call: ['delegate', { agents: workers(), message: 'Do your part.' }] };
  return { text: last.includes('long') ? Array.from({ length: 8 }, () => LONG).join('\n\n') : 'A short answer with `code`, a [link](https://example.com) and\n\n- a list\n- of two\n' };
}

function workers(): string[] {
  return Array.from({ length: WIDTH }, (_, at) => `worker-${at + 1}`);
}

test('1,000 messages, a run of 50 nodes and a graph of 200 agents stay smooth while an answer streams', async ({ page, startScripted }) => {
  const { baton, provider } = await startScripted({ model, config: '[orchestration]\nmax_live_children = 64\nmax_concurrent_delegations = 64\n' });
  const { project } = baton;
  for (const name of workers()) project.write(`agents/${name}.md`, `---\nname: ${name}\ndescription: Does one part.\n---\nYou are a worker.\n`);
  const rest = Array.from({ length: 144 }, (_, at) => `extra-${at + 1}`);
  for (const [at, name] of rest.entries()) project.write(`agents/${name}.md`, `---\nname: ${name}\ndescription: One of many.\nagents: [${rest.slice(at + 1, at + 4).join(', ')}]\n---\nYou are one of many.\n`);
  project.write('agents/lead.md', `---\nname: lead\ndescription: Asks everybody.\nagents: [${workers().join(', ')}, extra-1]\ndelegation: { max_concurrent: 50 }\n---\nYou lead the workers.\n`);
  await expect.poll(async () => (await baton.call('GET', '/api/v1/graph')).agents.length).toBe(199);

  for (let at = 0; at < 500; at += 1) await baton.say(THREAD, `Question ${at + 1}`, undefined, 'lead');
  await observeLongTasks(page);
  provider.pace = 5;

  await page.goto(`${baton.url}/threads/${THREAD}`);
  await expect(page.getByText('Question 500', { exact: true })).toBeVisible();
  // Earlier messages are loaded when the reader comes to the first one.
  await expect.poll(async () => {
    await page.getByRole('article').first().scrollIntoViewIfNeeded();
    return page.getByRole('article').count();
  }, { timeout: 120_000 }).toBe(1000);
  await resetLongTasks(page);
  // Nothing is looked for in the page meanwhile: that would be work in it.
  await baton.say(THREAD, 'A long answer please', undefined, 'lead');
  await page.waitForTimeout(1000);
  const chat = await longestTask(page);
  await expect(page.getByRole('article').last()).toContainText('Sentence 60 of a long answer.');
  report('a thread of 1,000 messages while an answer streams', chat);

  const wide = baton.say(THREAD, 'Ask everybody', undefined, 'lead');
  await expect.poll(async () => (await baton.call('GET', '/api/v1/runs?limit=1')).data[0].status).toBe('running');
  const { run_id: run } = (await baton.call('GET', '/api/v1/runs?limit=1')).data[0];
  await page.goto(`${baton.url}/runs/${run}`);
  await expect(page.getByRole('treeitem').first()).toBeVisible();
  await resetLongTasks(page);
  await wide;
  await page.waitForTimeout(3000);
  const tree = await longestTask(page);
  await expect(page.getByRole('treeitem')).toHaveCount(WIDTH + 1);
  report('a run of 50 nodes while it is running', tree);

  const overlaid = baton.say(THREAD, 'Ask everybody again', undefined, 'lead');
  await expect.poll(async () => (await baton.call('GET', '/api/v1/runs?limit=1')).data[0].status).toBe('running');
  const { run_id: next } = (await baton.call('GET', '/api/v1/runs?limit=1')).data[0];
  await page.goto(`${baton.url}/graph?run=${next}`);
  await expect(page.getByRole('application').or(page.locator('.react-flow'))).toBeVisible();
  await page.waitForTimeout(1000);
  await resetLongTasks(page);
  await overlaid;
  await page.waitForTimeout(3000);
  const graph = await longestTask(page);
  report('a graph of 200 agents with the path of a run', graph);

  expect(Math.max(chat, tree, graph)).toBeLessThanOrEqual(LIMIT_MS);
});
