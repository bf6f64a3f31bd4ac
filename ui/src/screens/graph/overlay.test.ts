import { expect, it } from 'vitest';
import type { Edge } from './model';
import { overlayOf, stepsText } from './overlay';
import type { Visit } from './path';

const edge = (from: string, to: string, kind: Edge['kind']): Edge => ({ id: `${from}|${to}|${kind}`, from, to, kind, lane: 0 });
const visit = (agent: string, fields: Partial<Visit> = {}): Visit => ({ path: agent, agent, status: 'completed', startedAt: 10, finishedAt: 30, ...fields });

it('marks agents and the edge of the right kind', () => {
  const overlay = overlayOf([visit('a'), visit('b', { from: 'a', kind: 'transfer' }), visit('b', { from: 'a', kind: 'call', status: 'failed', error: 'late' })], [edge('a', 'b', 'call'), edge('a', 'b', 'transfer')]);
  expect(overlay.byAgent.get('b')).toMatchObject({ steps: [2, 3], failed: true, milliseconds: 40, errors: ['late'] });
  expect(overlay.byEdge.get('a|b|transfer')?.steps).toEqual([2]);
  expect(overlay.byEdge.get('a|b|call')?.steps).toEqual([3]);
});

it('keeps passes that the graph does not know', () => {
  const overlay = overlayOf([visit('a'), visit('z', { from: 'a', kind: 'handoff', finishedAt: undefined, status: 'running' })], []);
  expect(overlay.extra).toMatchObject([{ from: 'a', to: 'z', mark: { running: true } }]);
});

it('shortens many steps', () => {
  expect(stepsText(overlayOf([visit('a'), visit('a'), visit('a'), visit('a')], []).byAgent.get('a')!)).toBe('1–4');
});
