import { expect, test } from 'vitest';
import { amountOf, csvRow, defaultMeasure, sinceOf, total, type Line } from './data';
import { buckets, ticks, unitOf } from './days';

const NOW = Date.parse('2026-11-16T17:14:00Z');

function line(key: string, cost_usd: string, cost_known = true, tokens = 100): Line {
  return { key, runs: 1, model_calls: 2, tool_calls: 3, usage: { input_tokens: tokens, output_tokens: 10, cached_tokens: 0, cache_write_tokens: 0, reasoning_tokens: 0, cost_usd, cost_known, estimated: false } };
}

test('ranges begin at whole hours and whole days', () => {
  expect(sinceOf('24h', NOW)).toBe('2026-11-15T17:00:00.000Z');
  expect(sinceOf('7d', NOW)).toBe('2026-11-10T00:00:00.000Z');
  expect(sinceOf('30d', NOW)).toBe('2026-10-18T00:00:00.000Z');
  expect(sinceOf('all', NOW)).toBeUndefined();
});

test('a sum with an unknown part is a lower bound, a sum of unknown parts is unknown', () => {
  expect(amountOf(total([line('a', '1.50'), line('b', '0.00', false)]).usage, 'cost')).toEqual({ value: 1.5, label: '≥ $1.50', isPartial: true });
  expect(amountOf(total([line('b', '0.00', false)]).usage, 'cost').label).toBe('unknown');
  expect(amountOf(line('a', '0').usage, 'tokens')).toEqual({ value: 110, label: '110', isPartial: false });
});

test('tokens are shown where there is no money to show', () => {
  expect(defaultMeasure(line('a', '0.00'))).toBe('tokens');
  expect(defaultMeasure(line('a', '0.00', false))).toBe('tokens');
  expect(defaultMeasure(line('a', '0.10', false))).toBe('cost');
});

test('days without use are zero, not missing', () => {
  const days = buckets([line('2026-11-12', '1'), line('2026-11-16', '2')], sinceOf('7d', NOW), NOW);
  expect(days.map((day) => [day.label, day.line.usage.cost_usd])).toEqual([['10 Nov', '0'], ['11 Nov', '0'], ['12 Nov', '1'], ['13 Nov', '0'], ['14 Nov', '0'], ['15 Nov', '0'], ['16 Nov', '2']]);
});

test('long spans are added up by week and by month without losing anything', () => {
  const weekly = buckets([line('2026-06-01', '1'), line('2026-06-07', '2'), line('2026-06-08', '4')], undefined, NOW);
  expect(weekly.slice(0, 2).map((week) => [week.title, week.line.usage.cost_usd])).toEqual([['Week of 1 Jun', '3'], ['Week of 8 Jun', '4']]);
  const monthly = buckets([line('2024-01-31', '1'), line('2024-02-01', '2')], undefined, NOW);
  expect([unitOf(weekly), unitOf(monthly)]).toEqual(['week', 'month']);
  expect(monthly).toHaveLength(35);
  expect(total(monthly.map((month) => month.line)).usage.cost_usd).toBe('3');
});

test('the axis begins at zero and covers the largest value', () => {
  expect(ticks(0)).toEqual([0]);
  expect(ticks(9)).toEqual([0, 5, 10]);
  expect(ticks(1.5)).toEqual([0, 0.5, 1, 1.5]);
  for (const most of [0.0003, 7, 12_345, 1e9]) expect(ticks(most).at(-1)).toBeGreaterThanOrEqual(most * 0.999);
});

test('an unknown price is an empty cell', () => {
  expect(csvRow(line('m', '0.00', false))[9]).toBeUndefined();
  expect(csvRow(line('m', '0.25', false))[9]).toBe('0.25');
});
