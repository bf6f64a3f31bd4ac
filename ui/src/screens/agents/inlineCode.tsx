import type { ReactNode } from 'react';

/** A message as a sentence; what stands between backquotes is shown as code. */
export function inlineCode(text: string): ReactNode[] {
  return capitalized(text).split(/`([^`]+)`/).map((part, at) => (at % 2 === 1 ? <code key={at}>{part}</code> : part));
}

function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
