import { describe, expect, it } from 'vitest';
import { at } from '../fixtures';
import { domainOf, MAX_ZOOM, percent, tickLabel, ticks, tickZoom, zoomAt, zoomTo } from './scale';

describe('domainOf', () => {
  it('covers a finished run exactly', () => {
    expect(domainOf({ created_at: at(1000), finished_at: at(3000) }, 9_999_999)).toEqual({ start: 1000, end: 3000 });
    expect(domainOf({ created_at: at(1000), finished_at: at(1000) }, 0).end).toBe(1001);
  });

  it('ends ahead of now in steps while the run goes on', () => {
    const end = (elapsed: number) => domainOf({ created_at: at(0) }, elapsed).end;
    expect(end(100)).toBe(5_000);
    expect(end(4_000)).toBe(5_000);
    expect(end(12_000)).toBe(15_000);
    expect(end(3 * 3_600_000)).toBe(3.5 * 3_600_000);
  });
});

it('percent stays within the domain', () => {
  const domain = { start: 100, end: 300 };
  expect([0, 100, 200, 300, 900].map((time) => percent(domain, time))).toEqual([0, 0, 50, 100, 100]);
});

describe('ticks', () => {
  it('are round and not more than wanted', () => {
    expect(ticks({ start: 7, end: 107 }, 5)).toEqual([0, 20, 40, 60, 80, 100]);
    expect(ticks({ start: 0, end: 52 }, 5)).toEqual([0, 20, 40]);
    expect(ticks({ start: 0, end: 95_000 }, 4)).toEqual([0, 30_000, 60_000, 90_000]);
  });

  it('have short labels', () => {
    expect([0, 250, 1_500, 30_000, 60_000, 90_000, 3_600_000, 5_400_000].map(tickLabel)).toEqual(['0', '250 ms', '1.5 s', '30 s', '1 min', '1:30 min', '1 h', '1:30 h']);
  });
});

it('ticks change when the magnification doubles', () => {
  expect([1, 1.9, 2, 7.9, 8].map(tickZoom)).toEqual([1, 1, 2, 4, 8]);
});

describe('zoom', () => {
  it('keeps the point under the pointer', () => {
    const view = zoomAt({ zoom: 1, left: 0 }, 2, 300, 1000);
    expect(view).toEqual({ zoom: 2, left: 300 });
    expect((view.left + 300) / 2000).toBeCloseTo(0.3);
  });

  it('stays between everything and the most', () => {
    expect(zoomAt({ zoom: 2, left: 500 }, 0.1, 300, 1000)).toEqual({ zoom: 1, left: 0 });
    expect(zoomAt({ zoom: MAX_ZOOM, left: 0 }, 2, 0, 1000).zoom).toBe(MAX_ZOOM);
  });

  it('shows a range', () => {
    expect(zoomTo(0.25, 0.5, 1000)).toEqual({ zoom: 4, left: 1000 });
    expect(zoomTo(0, 1, 1000)).toEqual({ zoom: 1, left: 0 });
  });
});
