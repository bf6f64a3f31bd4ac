import { useSyncExternalStore } from 'react';

/**
 * The credential of this tab. It lives in `sessionStorage`: other tabs and later visits sign in again, no cookie is ever sent, and so
 * there is nothing for another site to misuse (CSRF). Streams use `fetch`, which carries the header too.
 */
const STORAGE_KEY = 'baton.key';
/** Whose key it is, as `tenant/user`: a new key of the same user keeps what the tab keeps for them. */
const OWNER_KEY = 'baton.owner';
const listeners = new Set<() => void>();
let state: SessionState = 'active';

/** `rejected`: the server asks for a credential. `left`: signed out, and the page is about to be loaded anew. */
export type SessionState = 'active' | 'rejected' | 'left';

export function credential(): string | null {
  return sessionStorage.getItem(STORAGE_KEY);
}

export function signIn(key: string, owner: string): void {
  if (sessionStorage.getItem(OWNER_KEY) !== owner) forget();
  sessionStorage.setItem(STORAGE_KEY, key.trim());
  sessionStorage.setItem(OWNER_KEY, owner);
  change('active');
}

export function signOut(): void {
  forget();
  change('left');
}

/** The server answered 401: the sign-in page is shown. */
export function reject(): void {
  if (state === 'active') change('rejected');
}

export function sessionState(): SessionState {
  return state;
}

export function useSessionState(): SessionState {
  return useSyncExternalStore(subscribe, sessionState);
}

/** Browsers keep pages in memory for "Back". One of before a sign-out must not come back. */
addEventListener('pageshow', ({ persisted }) => {
  if (persisted && state === 'left') location.reload();
});

export function authorization(): Record<string, string> {
  const key = credential();
  return key ? { Authorization: `Bearer ${key}` } : {};
}

/** Removes the key and the drafts of messages. */
function forget(): void {
  for (const name of Object.keys(sessionStorage)) if (name.startsWith('baton.')) sessionStorage.removeItem(name);
}

function change(next: SessionState): void {
  state = next;
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
