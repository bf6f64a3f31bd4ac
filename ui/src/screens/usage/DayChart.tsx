import { useId, useState } from 'react';
import { cx } from '@/design';
import { compact, count, dollars, tokens } from '@/lib/format';
import { useWidth } from '@/lib/useWidth';
import { amountOf, type Measure } from './data';
import { ticks, unitOf, type Bucket } from './days';
import styles from './DayChart.module.css';

const HEIGHT = 208;
const TOP = 24;
const BOTTOM = 24;
/** A part without a price has no size: it is drawn this high, hatched. */
const UNKNOWN = 14;

/** Bars from zero, one per day, week or month. The exact numbers are in the table below. */
export function DayChart({ buckets, measure }: { buckets: Bucket[]; measure: Measure }) {
  const [ref, width] = useWidth<HTMLDivElement>();
  const hatch = useId();
  const [hovered, setHovered] = useState<number>();
  const bars = buckets.map((bucket) => ({ ...bucket, amount: amountOf(bucket.line.usage, measure) }));
  const most = Math.max(0, ...bars.map((bar) => bar.amount.value));
  const axis = ticks(most);
  const end = axis.at(-1) || 1;
  const money = (value: number) => (measure === 'cost' ? dollars(value).replace(/\.00$/, '') : compact(value));
  const left = 12 + 7 * Math.max(...axis.map((tick) => money(tick).length));
  const slot = Math.max(0, width - left) / bars.length;
  const bar = Math.max(2, Math.min(48, slot * 0.64));
  const cap = bars.some((one) => one.amount.isPartial) ? UNKNOWN : 0;
  const y = (value: number) => HEIGHT - BOTTOM - (value / end) * (HEIGHT - TOP - BOTTOM - cap);
  const every = Math.max(1, Math.ceil(52 / Math.max(1, slot)));
  const shown = hovered === undefined ? undefined : bars[hovered];
  const label = `${measure === 'cost' ? 'Cost' : 'Tokens'} by ${unitOf(buckets)}: ${bars.filter((one) => one.amount.value > 0 || one.amount.isPartial).map((one) => `${one.label} ${one.amount.label}`).join(', ') || 'nothing used'}`;
  return (
    <div ref={ref} className={styles.chart}>
      {width > 0 && (
        <svg width={width} height={HEIGHT} role="img" aria-label={label} onPointerLeave={() => setHovered(undefined)}>
          <defs>
            <pattern id={hatch} width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><line x1="0" y1="0" x2="0" y2="6" className={styles.hatch} /></pattern>
          </defs>
          {axis.map((tick) => (
            <g key={tick}>
              <line x1={left} x2={width} y1={y(tick)} y2={y(tick)} className={cx(styles.grid, tick === 0 && styles.zero)} />
              <text x={left - 8} y={y(tick)} dy="0.32em" textAnchor="end" className={styles.axis}>{money(tick)}</text>
            </g>
          ))}
          {bars.map(({ key, label, amount }, at) => {
            const x = left + slot * at + (slot - bar) / 2;
            const top = y(amount.value);
            const isNamed = (bars.length - 1 - at) % every === 0;
            // The last one would reach over the edge.
            const isLast = at === bars.length - 1 && slot < 52;
            const isLabelled = slot >= 52 && (amount.value > 0 || amount.isPartial);
            return (
              <g key={key} onPointerEnter={() => setHovered(at)}>
                <rect x={left + slot * at} y={0} width={slot} height={HEIGHT - BOTTOM} className={cx(styles.area, hovered === at && styles.hovered)} />
                {amount.value > 0 && <rect x={x} y={top} width={bar} height={Math.max(1, y(0) - top)} rx={Math.min(3, bar / 3)} className={styles.bar} />}
                {amount.isPartial && <rect x={x} y={top - UNKNOWN} width={bar} height={UNKNOWN} rx={Math.min(3, bar / 3)} fill={`url(#${hatch})`} className={styles.unknown} />}
                {isLabelled && <text x={x + bar / 2} y={top - (amount.isPartial ? UNKNOWN : 0) - 6} textAnchor="middle" className={styles.value}>{amount.label}</text>}
                {isNamed && <text x={isLast ? width : x + bar / 2} y={HEIGHT - 6} textAnchor={isLast ? 'end' : 'middle'} className={styles.axis}>{label}</text>}
              </g>
            );
          })}
        </svg>
      )}
      {shown && hovered !== undefined && (
        <div className={styles.tooltip} aria-hidden style={{ insetInlineStart: `clamp(0px, ${left + slot * (hovered + 0.5) - 104}px, calc(100% - 208px))` }}>
          <strong>{shown.title}</strong>
          <span>{amountOf(shown.line.usage, 'cost').label} · {count(tokens(shown.line.usage))} tokens</span>
          <span>{count(shown.line.model_calls)} model calls, {count(shown.line.tool_calls)} tool calls</span>
        </div>
      )}
    </div>
  );
}
