import type { ReactNode } from 'react';
import { capitalize } from '@/lib/format';

/** A message as a sentence; text between backquotes is shown as code. */
export function inlineCode(text: string): ReactNode[] {
  return capitalize(text).split(/`([^`]+)`/).map((part, at) => (at % 2 === 1 ? <code key={at}>{part}</code> : part));
}
