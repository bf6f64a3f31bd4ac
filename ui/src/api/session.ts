import { useSyncExternalStore } from 'react';

/**
 * The credential of this tab. It lives in `sessionStorage`: other tabs and later visits sign in again, no cookie is ever sent, and so
 * there is nothing for another site to misuse (CSRF). Streams use `fetch`, which carries the header too.
 */
const STORAGE_KEY = 'baton.key';
const listeners = new Set<() => void>();
let rejected = false;

export function credential(): string | null {
  return sessionStorage.getItem(STORAGE_KEY);
}

export function signIn(key: string): void {
  sessionStorage.setItem(STORAGE_KEY, key.trim());
  rejected = false;
  notify();
}

export function signOut(): void {
  sessionStorage.removeItem(STORAGE_KEY);
  rejected = false;
  notify();
}

/** The server answered 401: the sign-in page is shown. */
export function reject(): void {
  if (rejected) return;
  rejected = true;
  notify();
}

export function isRejected(): boolean {
  return rejected;
}

export function useIsRejected(): boolean {
  return useSyncExternalStore(subscribe, isRejected);
}

export function authorization(): Record<string, string> {
  const key = credential();
  return key ? { Authorization: `Bearer ${key}` } : {};
}

function notify(): void {
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
