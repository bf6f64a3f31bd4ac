import type { Definition } from './definition';

/** Which rule of the file applies to a tool. A refusal wins, then asking; `*` stands for any characters. */
export function approvalOf(tool: string, approvals: Definition['approvals']): 'deny' | 'ask' | 'auto' | undefined {
  const has = (patterns: string[] | undefined) => patterns?.some((pattern) => glob(pattern).test(tool)) ?? false;
  if (has(approvals?.deny)) return 'deny';
  if (has(approvals?.ask)) return 'ask';
  return has(approvals?.auto) ? 'auto' : undefined;
}

function glob(pattern: string): RegExp {
  const escaped = pattern.split('*').map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${escaped.join('.*')}$`);
}
