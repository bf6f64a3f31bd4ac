import { useState } from 'react';

/** What was typed but not sent, for this tab. */
export const drafts = {
  read: (threadId: string): string => sessionStorage.getItem(`baton.draft.${threadId}`) ?? '',
  write(threadId: string, text: string): void {
    if (text) sessionStorage.setItem(`baton.draft.${threadId}`, text);
    else sessionStorage.removeItem(`baton.draft.${threadId}`);
  },
};

/** A choice that this browser remembers. */
export function useRemembered(key: string, initial: string): [string, (value: string) => void] {
  const [value, setValue] = useState(() => localStorage.getItem(key) ?? initial);
  return [value, (next) => { localStorage.setItem(key, next); setValue(next); }];
}
