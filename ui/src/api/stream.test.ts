import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { follow } from './stream';

let hidden = false;
/** The signal of each connection, in order. */
let connections: { url: string; signal: AbortSignal }[];

beforeEach(() => {
  vi.useFakeTimers();
  hidden = false;
  connections = [];
  vi.spyOn(document, 'hidden', 'get').mockImplementation(() => hidden);
  vi.stubGlobal('fetch', (url: string, { signal }: { signal: AbortSignal }) => {
    connections.push({ url, signal });
    const body = new ReadableStream({
      start(controller) {
        controller.enqueue(new TextEncoder().encode(`id: ${connections.length * 7}\ndata: {"type":"RAW"}\n\n`));
        signal.addEventListener('abort', () => controller.error(signal.reason));
      },
    });
    return Promise.resolve(new Response(body));
  });
});

afterEach(() => {
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

async function show(isShown: boolean, milliseconds: number) {
  hidden = !isShown;
  document.dispatchEvent(new Event('visibilitychange'));
  await vi.advanceTimersByTimeAsync(milliseconds);
}

test('a hidden tab gives its connection back and goes on after the last event', async () => {
  const onStatus = vi.fn();
  const close = follow({ path: '/events', after: 3, onEvent: () => undefined, onStatus });
  await vi.advanceTimersByTimeAsync(10);
  await show(false, 9_000);
  expect(connections.map(({ signal }) => signal.aborted)).toEqual([false]);
  await show(true, 20_000);
  await show(false, 30_000);
  expect(connections.map(({ signal }) => signal.aborted)).toEqual([true]);
  expect(onStatus).not.toHaveBeenCalledWith('waiting');
  await show(true, 10);
  expect(connections.map(({ url }) => url)).toEqual(['/events?after=3', '/events?after=7']);
  expect(connections[1]?.signal.aborted).toBe(false);
  close();
});

test('a stream that is closed while its tab is hidden stays closed', async () => {
  const close = follow({ path: '/events', after: 0, onEvent: () => undefined });
  await vi.advanceTimersByTimeAsync(10);
  await show(false, 15_000);
  close();
  await show(true, 60_000);
  expect(connections).toHaveLength(1);
});
