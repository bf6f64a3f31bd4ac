import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Chat } from '../support/chat';
import { fill, HANDOFF } from '../support/data';
import { QUESTION, WISH } from '../support/journeys';
import { expect, test } from '../support/test';

const images = fileURLToPath(new URL('../../../docs/images/', import.meta.url));
const assemble = fileURLToPath(new URL('animate.py', import.meta.url));

test.use({ viewport: { width: 1200, height: 750 } });

test('four screens for the README', async ({ page, start }) => {
  const baton = await start();
  const { run } = await fill(baton);
  await page.emulateMedia({ reducedMotion: 'reduce', colorScheme: 'light' });
  mkdirSync(images, { recursive: true });
  const pictures: [string, string, 'light' | 'dark'][] = [
    ['chat', `/threads/${HANDOFF}`, 'light'],
    ['run', `/runs/${run}`, 'light'],
    ['graph', '/graph', 'dark'],
    ['agent', '/agents/skill-creator', 'dark'],
  ];
  for (const [name, path, colorScheme] of pictures) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    await page.goto(baton.url + path);
    await expect(page.getByRole('status', { name: 'Loading' })).toHaveCount(0);
    await page.waitForTimeout(600);
    await page.screenshot({ path: `${images}${name}.png` });
  }
});

test('a handoff as an animation', async ({ page, start }) => {
  const baton = await start();
  await page.setViewportSize({ width: 1000, height: 640 });
  await page.emulateMedia({ reducedMotion: 'reduce', colorScheme: 'light' });
  const frames = mkdtempSync(join(tmpdir(), 'baton-frames-'));
  const shown: [string, number][] = [];
  const take = async (milliseconds: number) => {
    const path = join(frames, `${String(shown.length).padStart(3, '0')}.png`);
    await page.screenshot({ path });
    shown.push([path, milliseconds]);
  };
  const chat = await new Chat(page).open(baton.url);
  const type = async (text: string) => {
    for (let end = 12; end < text.length + 12; end += 12) {
      await chat.message.fill(text.slice(0, end));
      await take(90);
    }
    await chat.message.press('Enter');
  };
  await take(900);
  await type(QUESTION);
  await chat.answer('Assistant', 'requests_per_minute');
  await take(2200);
  await type(WISH);
  await chat.answer('Skill Creation Assistant', 'step by step');
  await take(2600);
  await type('Read the report. Write the alert.');
  await chat.answer('Skill Creation Assistant', 'How should the result look?');
  await take(1600);
  await chat.exit.click();
  await chat.answer('Assistant', 'continue creating that skill later');
  await take(3000);
  writeFileSync(join(frames, 'frames.json'), JSON.stringify(shown));
  mkdirSync(images, { recursive: true });
  execFileSync(process.env.SHOTS_PYTHON ?? 'python3', [assemble, join(frames, 'frames.json'), `${images}handoff.gif`], { stdio: 'inherit' });
  rmSync(frames, { recursive: true });
});
