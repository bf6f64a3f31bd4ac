import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { cleanup, render, screen, within } from '@testing-library/react';
import { afterEach, expect, it, vi } from 'vitest';
import type { Insight } from './data';
import { Insights } from './Insights';

const INSIGHTS: Insight[] = [
  {
    query_class: 'billing',
    text: 'billing questions: billing 94% of 31, support 62% of 40',
    agents: [
      { agent: 'billing', success_rate: 0.9355, of: 31, average_cost_usd: 0.002 },
      { agent: 'support', success_rate: 0.625, of: 40, average_cost_usd: 0 },
    ],
  },
  { query_class: 'general', text: 'general questions: support 30% of 1,234', agents: [{ agent: 'support', success_rate: 0.3, of: 1234, average_cost_usd: 0 }] },
];

function show(insights: Insight[]) {
  vi.stubGlobal('fetch', vi.fn(async () => new Response(JSON.stringify({ data: [{ id: 'billing', display_name: 'Billing Desk', badge: {} }] }))));
  render(<QueryClientProvider client={new QueryClient({ defaultOptions: { queries: { retry: false } } })}><Insights insights={insights} /></QueryClientProvider>);
}

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

it('says for each kind of request how well which agent serves it, the best first', async () => {
  show(INSIGHTS);
  await screen.findByText('Billing Desk');
  const [billing, general] = screen.getAllByRole('listitem');
  expect(billing?.textContent).toMatch(/^billing questions.*Billing Desk94 %of 31.*support63 %of 40$/);
  expect(general?.textContent).toMatch(/^general questions.*support30 %of 1.?234$/);
  const grade = (text: string) => within(billing as HTMLElement).getByText(text).className;
  expect(grade('94 %')).toContain('good');
  expect(grade('63 %')).toContain('mixed');
  expect(within(general as HTMLElement).getByText('30 %').className).toContain('poor');
  expect(screen.getByTitle(/on average/).textContent).toContain('Billing Desk');
});

it('shows nothing where nothing was learnt', () => {
  show([]);
  expect(screen.queryByText('Who serves what')).toBeNull();
});
