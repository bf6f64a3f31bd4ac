import { beforeEach, expect, test, vi } from 'vitest';
import { credential, reject, sessionState, signIn, signOut } from './session';

beforeEach(() => {
  sessionStorage.clear();
  signIn('key-1', 'acme/ada');
});

test('a new key of the same user keeps the drafts', () => {
  sessionStorage.setItem('baton.draft.new', 'Hello');
  reject();
  expect(sessionState()).toBe('rejected');
  signIn('key-2', 'acme/ada');
  expect(sessionState()).toBe('active');
  expect(credential()).toBe('key-2');
  expect(sessionStorage.getItem('baton.draft.new')).toBe('Hello');
});

test('another user finds nothing of the user before', () => {
  sessionStorage.setItem('baton.draft.new', 'Hello');
  reject();
  signIn('key-2', 'globex/ada');
  expect({ ...sessionStorage }).toEqual({ 'baton.key': 'key-2', 'baton.owner': 'globex/ada' });
});

test('signing out removes everything, and a late refusal changes nothing', () => {
  sessionStorage.setItem('baton.draft.new', 'Hello');
  signOut();
  reject();
  expect(sessionState()).toBe('left');
  expect(sessionStorage.length).toBe(0);
});

test('a page from before a sign-out is loaded anew when the browser shows it again', () => {
  const reload = vi.spyOn(location, 'reload').mockImplementation(() => undefined);
  const show = () => dispatchEvent(Object.assign(new Event('pageshow'), { persisted: true }));
  show();
  expect(reload).not.toHaveBeenCalled();
  signOut();
  show();
  expect(reload).toHaveBeenCalledOnce();
});
