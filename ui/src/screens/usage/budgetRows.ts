import type { Budget } from './data';

/** One limit of a budget. */
export interface BudgetRow {
  id: string;
  name: string;
  unit: 'cost' | 'tokens';
  limit: number;
  spent: number;
  remaining: number;
  percent: number;
  level: 'ok' | 'warning' | 'exhausted';
  endsAt?: string | undefined;
}

/** A row for the money and one for the tokens of a budget, as far as they are limited. */
export function budgetRows(budget: Budget): BudgetRow[] {
  const whose = budget.scope === 'tenant' ? 'Tenant' : `${budget.scope === 'user' ? 'User' : 'Thread'} ${budget.subject ?? ''}`;
  const name = budget.period === 'total' ? whose : `${whose}, this ${budget.period}`;
  const row = (unit: BudgetRow['unit'], limit: number, spent: number, remaining: number): BudgetRow => {
    const percent = limit === 0 ? 100 : Math.floor((spent * 100) / limit);
    const level = percent >= 100 ? 'exhausted' : percent >= 80 ? 'warning' : 'ok';
    return { id: `${name} ${unit}`, name, unit, limit, spent, remaining, percent, level, endsAt: budget.ends_at };
  };
  return [
    ...(budget.max_cost_usd !== undefined ? [row('cost', Number(budget.max_cost_usd), Number(budget.spent_usd), Number(budget.remaining_usd ?? 0))] : []),
    ...(budget.max_tokens !== undefined ? [row('tokens', budget.max_tokens, budget.spent_tokens, budget.remaining_tokens ?? 0)] : []),
  ];
}
