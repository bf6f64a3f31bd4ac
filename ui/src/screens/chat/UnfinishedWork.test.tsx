import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react';
import { afterEach, expect, it, vi } from 'vitest';
import { UnfinishedWork } from './UnfinishedWork';

const WORK = {
  handoff_id: '0195f7a0-0000-7000-8000-000000000001',
  thread_id: '6f1c2a9e-3b47-4d0a-9c55-2f8e7a1b4c3d',
  agent: 'skill-creator',
  display_name: 'Skill Creation Assistant',
  message: 'Welcome back! Would you like to continue creating your Slack alert skill?',
};

/** Answers with this work, and keeps the requests that change something. */
function show(work: object[]) {
  const posted: string[] = [];
  vi.stubGlobal('fetch', vi.fn(async (request: Request | string) => {
    const url = typeof request === 'string' ? request : request.url;
    if (typeof request !== 'string' && request.method === 'POST') posted.push(new URL(url).pathname);
    return new Response(JSON.stringify({ data: url.includes('/resumable') ? work : [] }), { headers: { 'Content-Type': 'application/json' } });
  }));
  const client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  render(<QueryClientProvider client={client}><UnfinishedWork /></QueryClientProvider>);
  return posted;
}

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

it('offers the newest work of another conversation and continues it there', async () => {
  const posted = show([WORK, { ...WORK, handoff_id: '0195f7a0-0000-7000-8000-000000000002', message: 'Older.' }]);
  await screen.findByText(WORK.message);
  expect(screen.queryByText('Older.')).toBeNull();
  fireEvent.click(screen.getByRole('button', { name: 'Continue' }));
  await waitFor(() => expect(posted).toEqual([`/api/v1/threads/${WORK.thread_id}/handoff/resume`]));
});

it('goes away for those who do not want it now', async () => {
  show([WORK]);
  await screen.findByText(WORK.message);
  fireEvent.click(screen.getByRole('button', { name: 'Not now' }));
  expect(screen.queryByText(WORK.message)).toBeNull();
});

it('shows nothing without unfinished work', async () => {
  show([]);
  await waitFor(() => expect(fetch).toHaveBeenCalled());
  expect(screen.queryByRole('button')).toBeNull();
});
