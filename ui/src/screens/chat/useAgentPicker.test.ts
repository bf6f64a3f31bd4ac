import { describe, expect, it } from 'vitest';
import { matching, mentionAt } from './useAgentPicker';

describe('mentions', () => {
  it('finds the word after an @ before the caret', () => {
    expect(mentionAt('ask @kno', 8)).toBe('kno');
    expect(mentionAt('@', 1)).toBe('');
    expect(mentionAt('me@example.com', 14)).toBeUndefined();
    expect(mentionAt('@kno later', 10)).toBeUndefined();
  });

  it('lists visible agents, those that begin with the word first', () => {
    const agent = (id: string, hidden = false) => ({ id, display_name: id, badge: { color: 'blue', hidden } }) as Parameters<typeof matching>[0][number];
    expect(matching([agent('my-research'), agent('research'), agent('research-old', true), agent('other')], 're').map(({ id }) => id)).toEqual(['research', 'my-research']);
  });
});
