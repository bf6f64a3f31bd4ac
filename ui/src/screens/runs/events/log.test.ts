import { expect, it } from 'vitest';
import type { AguiEvent } from '@/api/events';
import { countTypes, filterEntries, summary, type Entry } from './log';

const events: AguiEvent[] = [
  { type: 'RUN_STARTED', threadId: 't', runId: 'r' },
  { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm', delta: 'Hello' },
  { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm', delta: 'World' },
  { type: 'CUSTOM', name: 'baton.usage', value: { a: 1 } },
];
const entries: Entry[] = events.map((event, number) => ({ number, event }));

it('counts types, custom ones by name', () => {
  expect(countTypes(entries)).toEqual([['TEXT_MESSAGE_CONTENT', 2], ['CUSTOM baton.usage', 1], ['RUN_STARTED', 1]]);
});

it('filters by type and text', () => {
  expect(filterEntries(entries, '', '')).toBe(entries);
  expect(filterEntries(entries, 'TEXT_MESSAGE_CONTENT', 'world').map((entry) => entry.number)).toEqual([2]);
  expect(filterEntries(entries, 'CUSTOM baton.usage', '')).toHaveLength(1);
});

it('summarizes an event in one line', () => {
  expect(events.map(summary)).toEqual(['', 'Hello', 'World', 'baton.usage']);
  expect(summary({ type: 'TEXT_MESSAGE_CONTENT', messageId: 'm', delta: 'x'.repeat(200) })).toHaveLength(161);
});
