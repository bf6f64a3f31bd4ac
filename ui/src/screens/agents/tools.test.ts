import { expect, it } from 'vitest';
import { approvalOf } from './tools';

it('lets a refusal win over asking, and asking over running', () => {
  const approvals = { deny: ['mcp:tickets/delete_*'], ask: ['mcp:tickets/*', 'save_skill'], auto: ['save_skill', 'search.docs'] };
  expect(approvalOf('mcp:tickets/delete_all', approvals)).toBe('deny');
  expect(approvalOf('mcp:tickets/close', approvals)).toBe('ask');
  expect(approvalOf('save_skill', approvals)).toBe('ask');
  expect(approvalOf('search.docs', approvals)).toBe('auto');
  expect(approvalOf('searchxdocs', approvals)).toBeUndefined();
  expect(approvalOf('anything', undefined)).toBeUndefined();
});
