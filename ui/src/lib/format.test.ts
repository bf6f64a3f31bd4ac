import { describe, expect, it } from 'vitest';
import { capitalize, compact, cost, duration, plural, relative, shortId } from './format';

const HOUR = 3_600_000;

describe('format', () => {
  it.each([
    [0, '0 ms'], [999, '999 ms'], [1_500, '1.5 s'], [9_960, '10 s'], [59_400, '59 s'], [59_700, '1 min 0 s'], [119_700, '2 min 0 s'],
    [HOUR, '1 h 0 min'], [47 * HOUR, '47 h 0 min'], [50 * HOUR, '2 days 2 h'],
  ])('writes %d ms as %s', (milliseconds, text) => expect(duration(milliseconds)).toBe(text));

  it.each([[10, 'just now'], [46, '1 min ago'], [7_200, '2 h ago'], [86_400, '1 day ago'], [3 * 86_400, '3 days ago']])('says how long ago %d seconds are', (seconds, text) => {
    const now = Date.parse('2026-11-16T12:00:00Z');
    expect(relative(new Date(now - seconds * 1000), now)).toBe(text);
  });

  it('adds the plural except for one', () => {
    expect([0, 1, 1200].map((value) => plural(value, 'run'))).toEqual(['0 runs', '1 run', '1,200 runs']);
    expect(plural(2, 'entry', 'entries')).toBe('2 entries');
  });

  it('never shows an unknown price as zero', () => {
    expect(cost(undefined)).toBe('–');
    expect(cost({ cost_known: false, cost_usd: '0' })).toBe('unknown');
    expect(cost({ cost_known: false, cost_usd: '0.5' })).toBe('≥ $0.50');
    expect(cost({ cost_known: true, cost_usd: '0' })).toBe('$0');
  });

  it('shortens ids and large numbers', () => {
    expect(shortId('01890a5d-ac96-774b-bcce-b302099a8057')).toBe('01890a5d…8057');
    expect(shortId('run-1')).toBe('run-1');
    expect([9_999, 12_345].map(compact)).toEqual(['9,999', '12.3K']);
    expect(capitalize('waiting')).toBe('Waiting');
  });
});
