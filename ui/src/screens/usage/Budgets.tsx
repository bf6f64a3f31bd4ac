import { Card } from '@/design';
import { compact, count } from '@/lib/format';
import styles from './Budgets.module.css';
import { budgetRows, type BudgetRow } from './budgetRows';
import type { Budget } from './data';

/** What is spent and what is left of each budget. */
export function Budgets({ budgets }: { budgets: Budget[] }) {
  return (
    <Card className={styles.budgets}>
      <h2>Budgets</h2>
      <ul>{budgets.flatMap(budgetRows).map((row) => <li key={row.id}><Row row={row} /></li>)}</ul>
    </Card>
  );
}

function Row({ row }: { row: BudgetRow }) {
  const amount = (value: number) => (row.unit === 'cost' ? `$${money(value)}` : `${compact(value)} tokens`);
  const exact = row.unit === 'tokens' ? count(row.spent) : undefined;
  return (
    <>
      <div className={styles.line}>
        <span className={styles.name} dir="auto">{row.name}</span>
        <span className="tabular" title={exact}><strong>{amount(row.spent)}</strong> of {amount(row.limit)} spent · {amount(row.remaining)} left</span>
      </div>
      <div className={styles.bar} data-level={row.level} role="meter" aria-label={row.name} aria-valuemin={0} aria-valuemax={100} aria-valuenow={Math.min(100, row.percent)} aria-valuetext={`${row.percent} % spent`}>
        <span style={{ inlineSize: `${Math.min(100, row.percent)}%` }} />
      </div>
      <p className={styles.hint}>{row.percent} % spent{row.level === 'exhausted' ? ': runs end with budget_exhausted' : row.level === 'warning' ? ': nearly used up' : ''}{row.endsAt && <> · starts again <time dateTime={row.endsAt} className="tabular">{row.endsAt.slice(0, 16).replace('T', ' ')} UTC</time></>}</p>
    </>
  );
}

/** At least two decimals, and all that are not zero: budgets of a cent matter. */
function money(value: number): string {
  return value.toFixed(6).replace(/(\.\d\d\d*?)0+$/, '$1');
}
