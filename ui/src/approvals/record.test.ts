import { expect, it } from 'vitest';
import { agentsOf, byExpiry, formOf, newer, previewOf, unseen, type Approval } from './record';

const approval = (change: Partial<Approval>): Approval => ({
  approval_id: 'a', kind: 'tool', path: 'assistant/turn:1/tool:1', agent: 'assistant', tool: 'shell', digest: 'd', risk: 'high', preview: { heading: '' }, status: 'pending', created_at: '2026-01-01T00:00:00Z', expires_at: '2026-01-02T00:00:00Z', ...change,
});

it('names the agents of a path', () => {
  expect(agentsOf('assistant/turn:1/tool:1')).toEqual(['assistant']);
  expect(agentsOf('assistant/turn:1/tool:1/call:worker/turn:2/tool:1/delegate:writer/turn:1/tool:3')).toEqual(['assistant', 'worker', 'writer']);
  expect(agentsOf('maker/turn:1/tool:1/walk/entry:1')).toEqual(['maker']);
  expect(agentsOf('lead/round:2/member:writer/turn:1/tool:1')).toEqual(['lead', 'writer']);
});

it('puts first what expires first', () => {
  const list = [approval({ approval_id: 'late', expires_at: '2026-01-03T00:00:00Z' }), approval({ approval_id: 'soon', expires_at: '2026-01-01T01:00:00+00:30' }), approval({ approval_id: 'mid' })];
  expect(byExpiry(list).map(({ approval_id }) => approval_id)).toEqual(['soon', 'mid', 'late']);
});

it('never opens what was settled', () => {
  const [open, denied] = [approval({}), approval({ status: 'denied' })];
  expect([newer(open, denied), newer(denied, open)]).toEqual([denied, denied]);
});

it('makes a form only of fields', () => {
  expect(formOf(approval({ schema: { type: 'string' } }))).toBeUndefined();
  expect(formOf(approval({ schema: { type: 'object', properties: { day: { type: 'string' } } } }))).toBeDefined();
});

it('shows of a preview what the arguments do not say', () => {
  const plain = { heading: 'Use the tool shell', fields: [{ label: 'tool', value: 'shell' }, { label: 'command', value: 'ls' }] };
  expect(previewOf(approval({ arguments: { command: 'ls' }, preview: plain }))).toEqual({ heading: '', fields: [] });
  const transfer = { heading: 'Pass the conversation on', fields: [{ label: 'tool', value: 'transfer' }, { label: 'to', value: 'Billing' }, { label: 'reason', value: 'An invoice…' }] };
  expect(previewOf(approval({ arguments: { reason: 'An invoice… is missing' }, preview: transfer }))).toEqual({ heading: 'Pass the conversation on', fields: [{ label: 'to', value: 'Billing' }] });
});

it('does not count what the workflow of the open conversation asks', () => {
  const listed = (change: Partial<Approval>, thread_id: string) => ({ ...approval(change), thread_id, run_id: 'r' });
  const all = [listed({ approval_id: 'call' }, 't1'), listed({ approval_id: 'step', kind: 'question', handoff_id: 'h' }, 't1'), listed({ approval_id: 'other', kind: 'question', handoff_id: 'h2' }, 't2')];
  expect(unseen(all, 't1').map(({ approval_id }) => approval_id)).toEqual(['call', 'other']);
  expect(unseen(all, undefined)).toHaveLength(3);
});
