import { describe, expect, it } from 'vitest';
import type { Step } from '@/api/types';
import { flatten } from '../tree/flatten';
import { call, session } from '../fixtures';
import { comparePaths, conversationBefore, groupSteps } from './conversation';
import { pretty, replyOf, stepTitle, textOf, toolOf } from './decode';

const step = (kind: Step['kind'], path: string, more: Partial<Step> = {}): Step => ({ kind, path, session_id: 'a', agent: 'a', state: 'finished', at: '2026-01-01T00:00:00Z', ...more });

describe('textOf', () => {
  it('finds the words in whatever was recorded', () => {
    expect(textOf('Hi')).toBe('Hi');
    expect(textOf([{ type: 'text', text: 'Hi' }, { type: 'file', name: 'a.pdf' }, { type: 'image' }])).toBe('Hi\n[file: a.pdf]\n[image]');
    expect(textOf({ text: 'Hi' })).toBe('Hi');
    expect(textOf({ odd: 1 })).toBe('{\n  "odd": 1\n}');
    expect(textOf(undefined)).toBe('');
  });
});

it('pretty breaks JSON into lines and leaves other texts alone', () => {
  expect(pretty('{"a":1}')).toBe('{\n  "a": 1\n}');
  expect(pretty('[1] docs/a.md')).toBe('[1] docs/a.md');
  expect(pretty('plain')).toBe('plain');
});

it('replyOf reads text, reasoning and calls', () => {
  const output = { text: 'Hi', reasoning: [{ text: 'Hm' }], calls: [{ id: '1', name: 'search', arguments: '{"q":1}' }] };
  expect(replyOf(output)).toEqual({ text: 'Hi', reasoning: 'Hm', calls: [{ name: 'search', arguments: '{\n  "q": 1\n}' }] });
  expect(replyOf({ reply: output }).text).toBe('Hi');
  expect(replyOf('Hi')).toEqual({ text: 'Hi', reasoning: '', calls: [] });
  expect(replyOf(undefined).text).toBe('');
});

describe('toolOf', () => {
  it('reads the call and its result', () => {
    const tool = step('tool', 'a/turn:1/tool:1', { input: { name: 'search', arguments: '{}' }, output: { name: 'search', content: 'found', failed: true } });
    expect(toolOf(tool, [])).toEqual({ name: 'search', arguments: '{}', result: 'found', failed: true });
  });

  it('takes plain arguments, and the name from the ledger', () => {
    const tool = step('tool', 'a/turn:1/tool:1', { input: { query: 'x' }, output: 'found' });
    expect(toolOf(tool, [call('a/turn:1/tool:1', 0, 1, { kind: 'tool', name: 'search' })])).toMatchObject({ name: 'search', arguments: '{\n  "query": "x"\n}', result: 'found' });
  });
});

it('toolOf keeps arguments that are called name, and finds the name in the reply', () => {
  const turn = step('turn', 'a/turn:1', { output: { text: '', tool_calls: [{ name: 'look', arguments: {} }, { name: 'save_file', arguments: {} }] } });
  const tool = step('tool', 'a/turn:1/tool:2', { input: { name: 'report.md' }, state: 'started' });
  expect(toolOf(tool, [], [turn, tool])).toEqual({ name: 'save_file', arguments: '{\n  "name": "report.md"\n}', result: '', failed: false });
});

it('stepTitle names the step', () => {
  expect(stepTitle(step('turn', 'a/turn:2'), [])).toBe('Model turn 2');
  expect(stepTitle(step('note', 'a/turn:1/results'), [])).toBe('Note: results');
});

describe('conversationBefore', () => {
  const steps = [
    step('session', 'a', { input: 'Look it up' }),
    step('turn', 'a/turn:10', { output: { text: 'late' } }),
    step('turn', 'a/turn:1', { output: { text: '', calls: [{ name: 'search', arguments: '{}' }] } }),
    step('tool', 'a/turn:1/tool:1', { output: { name: 'search', content: 'found', failed: false } }),
    step('turn', 'a/turn:2', { output: { text: 'Done' } }),
    step('turn', 'a/turn:1/tool:1/call:b/turn:1', { session_id: 'b', output: { text: 'other' } }),
  ];

  it('is what the session had read when the turn began', () => {
    expect(conversationBefore(steps[4]!, steps, []).map(({ role, text }) => [role, text])).toEqual([['task', 'Look it up'], ['agent', ''], ['tool', 'found']]);
    expect(conversationBefore(steps[1]!, steps, [])).toHaveLength(4);
  });

  it('uses the given task where the session has none', () => {
    expect(conversationBefore(steps[5]!, steps, [], 'Hello')).toEqual([{ role: 'task', path: steps[5]!.path, text: 'Hello' }]);
  });

  it('compares numbers as numbers', () => {
    expect(comparePaths('a/turn:2', 'a/turn:10')).toBeLessThan(0);
    expect(comparePaths('a/turn:1/tool:1', 'a/turn:2')).toBeLessThan(0);
  });

  it('groups steps by session in tree order', () => {
    const nodes = flatten([session('a', 0, 1, { sessions: [session('b', 0, 1), session('c', 0, 1)] })]);
    expect(groupSteps(steps, nodes).map((group) => [group.node.id, group.steps.length])).toEqual([['a', 5], ['b', 1]]);
  });
});
