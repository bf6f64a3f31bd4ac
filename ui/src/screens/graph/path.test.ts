import { expect, it } from 'vitest';
import type { AguiEvent } from '@/api/events';
import { applyEvent, merged, places, type Visit } from './path';

const event = (type: string, path: string[], fields: object = {}) => ({ type, timestamp: 5, metadata: { baton: { thread_id: 't', run_id: 'r', agent: '', path, seq: 1 } }, ...fields }) as unknown as AguiEvent;

it('reads who involved whom from a path', () => {
  expect(places(['a', 'turn:1', 'tool:1', 'delegate:b', 'round:2', 'member:c'])).toEqual([
    { path: 'a', agent: 'a' },
    { path: 'a/turn:1/tool:1/delegate:b', agent: 'b', from: 'a', kind: 'call' },
    { path: 'a/turn:1/tool:1/delegate:b/round:2/member:c', agent: 'c', from: 'b', kind: 'member' },
  ]);
  expect(places([])).toEqual([]);
});

it('follows agents as they begin and end', () => {
  const events = [event('RUN_STARTED', ['a']), event('SUBAGENT_STARTED', ['a', 'turn:1', 'call:b'], { description: 'why' }), event('SUBAGENT_ERROR', ['a', 'turn:1', 'call:b'], { message: 'late' }), event('TEXT_MESSAGE_START', ['a', 'turn:2'])];
  const visits = events.reduce(applyEvent, [] as Visit[]);
  expect(visits.map(({ agent, status, error, why }) => [agent, status, error, why])).toEqual([['a', 'running', undefined, undefined], ['b', 'failed', 'late', 'why']]);
  expect(applyEvent(visits, event('TEXT_MESSAGE_CONTENT', ['a', 'turn:2']))).toBe(visits);
});

it('ends everyone with the run', () => {
  const visits = [event('RUN_STARTED', ['a']), event('STATE_DELTA', ['a', 'handoff:b']), event('RUN_FINISHED', ['a'])].reduce(applyEvent, [] as Visit[]);
  expect(visits.map((visit) => visit.status)).toEqual(['completed', 'completed']);
});

it('prefers what is stored and adds what is newer', () => {
  const visit = (path: string, fields: Partial<Visit> = {}): Visit => ({ path, agent: path, status: 'running', startedAt: 1, ...fields });
  const result = merged([visit('a', { status: 'completed', finishedAt: 2 }), visit('b')], [visit('a'), visit('b', { status: 'failed', finishedAt: 3 }), visit('c')]);
  expect(result.map(({ path, status }) => [path, status])).toEqual([['a', 'completed'], ['b', 'failed'], ['c', 'running']]);
});
