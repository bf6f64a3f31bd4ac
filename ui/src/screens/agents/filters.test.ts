import { describe, expect, it } from 'vitest';
import type { Diagnostic } from '@/api/types';
import type { Agent } from '@/api/useAgents';
import { filterId, findingsOf, matches, passes } from './filters';

const agent = (fields: Partial<Agent> = {}): Agent => ({
  id: 'code-review', display_name: 'Code Reviewer', description: 'Reads changes', kind: 'local', version: '1.0.0', model: ['anthropic/large'], tools: ['read_file'],
  related: [], handoffs: [], trigger_examples: [], holds_threads: false, can_be_orchestrated: true, badge: { color: 'blue', hidden: false }, ...fields,
});
const finding = (file: string) => ({ file, severity: 'warning', rule: 'unknown-key', message: '', help: '', line: 1, column: 1, end_line: 1, end_column: 1 }) as Diagnostic;

describe('agent filters', () => {
  it('reads unknown filters as all', () => {
    expect(filterId('nonsense')).toBe('all');
    expect(filterId('remote')).toBe('remote');
  });

  it('selects by role', () => {
    expect(passes(agent({ holds_threads: true }), 'specialists')).toBe(true);
    expect(passes(agent(), 'remote')).toBe(false);
    expect(passes(agent({ badge: { color: 'blue', hidden: true } }), 'hidden')).toBe(true);
  });

  it('needs every word of the search', () => {
    expect(matches(agent(), '')).toBe(true);
    expect(matches(agent(), 'REVIEW anthropic')).toBe(true);
    expect(matches(agent(), 'review openai')).toBe(false);
  });

  it('finds the findings of a file by id or display name', () => {
    const all = [finding('agents/code-review.md'), finding('agents/Code Reviewer.agent.md'), finding('agents/other.md')];
    expect(findingsOf(agent(), all)).toHaveLength(2);
  });
});
