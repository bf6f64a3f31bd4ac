import type { ReactNode } from 'react';
import { compact, cost, count } from '@/lib/format';
import type { Line } from './data';
import styles from './Usage.module.css';

/** The sums of the range. */
export function Tiles({ sum }: { sum: Line }) {
  const { usage } = sum;
  const isUnknown = !usage.cost_known && Number(usage.cost_usd) === 0;
  const hint = usage.cost_known ? 'all prices known' : isUnknown ? 'no model here has a price' : 'some models have no price';
  return (
    <dl className={styles.tiles}>
      <Tile name="Cost" value={isUnknown ? <span className={styles.unknownText}>unknown</span> : cost(usage)} hint={hint} />
      <Tile name="Tokens in" value={compact(usage.input_tokens)} title={count(usage.input_tokens)} hint={usage.cached_tokens > 0 ? `${compact(usage.cached_tokens)} from cache` : usage.estimated ? 'partly estimated' : 'sent to models'} />
      <Tile name="Tokens out" value={compact(usage.output_tokens)} title={count(usage.output_tokens)} hint={usage.reasoning_tokens > 0 ? `${compact(usage.reasoning_tokens)} for reasoning` : 'written by models'} />
      <Tile name="Model calls" value={compact(sum.model_calls)} title={count(sum.model_calls)} hint={`in ${compact(sum.runs)} ${sum.runs === 1 ? 'run' : 'runs'}`} />
      <Tile name="Tool calls" value={compact(sum.tool_calls)} title={count(sum.tool_calls)} hint="by agents" />
    </dl>
  );
}

function Tile({ name, value, title, hint }: { name: string; value: ReactNode; title?: string; hint: string }) {
  return (
    <div className={styles.tile}>
      <dt>{name}</dt>
      <dd className={styles.tileValue} title={title}>{value}</dd>
      <dd className={styles.tileHint}>{hint}</dd>
    </div>
  );
}
