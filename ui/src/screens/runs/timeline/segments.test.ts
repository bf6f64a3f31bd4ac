import { describe, expect, it } from 'vitest';
import { flatten } from '../tree/flatten';
import { at, call, session } from '../fixtures';
import { attemptsOf, timelineRows } from './segments';

const shape = (row: ReturnType<typeof timelineRows>[number] | undefined) => row?.segments.map(({ kind, start, end, lane }) => [kind, start, end, lane]);

describe('timelineRows', () => {
  it('shows calls and the waits between them', () => {
    const nodes = flatten([session('a', 0, 1000)]);
    const calls = [call('a/turn:1', 0, 200), call('a/turn:1/tool:1', 200, 100, { kind: 'tool' }), call('a/turn:2', 700, 290)];
    expect(shape(timelineRows(nodes, calls, [], 50)[0])).toEqual([['model', 0, 200, 0], ['tool', 200, 300, 0], ['model', 700, 990, 0], ['wait', 300, 700, 0]]);
  });

  it('leaves out gaps that are only overhead', () => {
    const [row] = timelineRows(flatten([session('a', 0, 1000)]), [call('a/turn:1', 10, 980)], [], 50);
    expect(row?.segments).toHaveLength(1);
  });

  it('puts parallel calls into lanes and forgives rounding', () => {
    const tool = { kind: 'tool' as const };
    const calls = [call('a/turn:1', 0, 11), call('a/turn:1/tool:1', 10, 90, tool), call('a/turn:1/tool:2', 10, 40, tool), call('a/turn:2', 101, 9)];
    const [row] = timelineRows(flatten([session('a', 0, 110)]), calls, [], 50);
    expect(row?.lanes).toBe(2);
    expect(row?.segments.map((segment) => segment.lane)).toEqual([0, 0, 1, 0]);
  });

  it('tells delegation from other tools by the sessions below', () => {
    const child = session('b', 20, 80, { path: 'a/turn:1/tool:1/call:b' });
    const calls = [call('a/turn:1/tool:1', 10, 80, { kind: 'tool' }), call('a/turn:1/tool:10', 10, 80, { kind: 'tool' })];
    const [row] = timelineRows(flatten([session('a', 0, 100, { sessions: [child] })]), calls, [], 50);
    expect(row?.segments.map((segment) => segment.kind)).toEqual(['delegation', 'tool']);
  });

  it('shows what is going on in an open session', () => {
    const nodes = flatten([session('a', 0, undefined)]);
    const open = { path: 'a/turn:2', session_id: 'a', agent: 'a', kind: 'turn' as const, state: 'started' as const, at: at(500) };
    const [row] = timelineRows(nodes, [call('a/turn:1', 0, 100)], [open], 50);
    expect(shape(row)).toEqual([['model', 0, 100, 0], ['model', 500, undefined, 0], ['wait', 100, 500, 0]]);
    expect(row?.end).toBeUndefined();
  });

  it('shows a session that waits as waiting until now', () => {
    const [row] = timelineRows(flatten([session('a', 0, undefined, { status: 'waiting' })]), [call('a/turn:1', 0, 100)], [], 50);
    expect(shape(row)?.at(-1)).toEqual(['wait', 100, undefined, 0]);
  });
});

it('attempts are calls with the same path', () => {
  const calls = [call('a/turn:1', 0, 5, { outcome: 'failed' }), call('a/turn:2', 9, 5), call('a/turn:1', 6, 3)];
  expect(attemptsOf(calls)).toEqual([{ attempt: 1, of: 2 }, { attempt: 1, of: 1 }, { attempt: 2, of: 2 }]);
});
