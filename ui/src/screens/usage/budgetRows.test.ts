import { expect, test } from 'vitest';
import { budgetRows } from './budgetRows';
import type { Budget } from './data';

const budget: Budget = { scope: 'user', subject: 'ada', period: 'day', ends_at: '2026-11-18T00:00:00Z', spent_usd: '0.85', spent_tokens: 500, reserved_usd: '0.05', reserved_tokens: 0, percent: 85 };

test('each limit of a budget is a row with its own share', () => {
  const rows = budgetRows({ ...budget, max_cost_usd: '1.00', remaining_usd: '0.10', max_tokens: 500, remaining_tokens: 0 });
  expect(rows.map(({ name, unit, percent, level, remaining }) => [name, unit, percent, level, remaining])).toEqual([
    ['User ada, this day', 'cost', 85, 'warning', 0.1],
    ['User ada, this day', 'tokens', 100, 'exhausted', 0],
  ]);
});

test('a limit that is not set is no row, and a limit of zero is used up', () => {
  expect(budgetRows(budget)).toEqual([]);
  const [row] = budgetRows({ ...budget, scope: 'tenant', period: 'month', max_cost_usd: '0.00', spent_usd: '0.00', remaining_usd: '0.00' });
  expect([row?.name, row?.level]).toEqual(['Tenant, this month', 'exhausted']);
});
