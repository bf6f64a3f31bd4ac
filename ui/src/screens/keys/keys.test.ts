import { expect, test } from 'vitest';
import { Problem } from '@/api/problem';
import { dateOf, EMPTY, errorsOf, requestOf, sorted, words, type Key } from './data';

const NOW = Date.parse('2026-11-16T00:00:00Z');
const key = (name: string, status: Key['status'], created_at: string): Key => ({ key_id: name, name, user_id: 'ada', roles: ['user'], prefix: 'baton_abc', status, created_at });

test('a draft becomes a request without empty fields', () => {
  expect(requestOf({ ...EMPTY, name: ' export ', expires: '' }, NOW)).toEqual({ name: 'export', roles: ['user'] });
  const full = { name: 'export', user: ' ada ', roles: ['viewer'], otherRoles: 'auditor, clerk', scopes: 'thread:read,agent:read', expires: '90' };
  expect(requestOf(full, NOW)).toEqual({
    name: 'export', user_id: 'ada', roles: ['viewer', 'auditor', 'clerk'], scopes: ['thread:read', 'agent:read'], expires_at: '2027-02-14T00:00:00.000Z',
  });
  expect(words(' , a  b,c ')).toEqual(['a', 'b', 'c']);
});

test('a refused request says which field is wrong', () => {
  const problem = Problem.from(400, { code: 'invalid_request', detail: 'no', errors: [{ pointer: '/scopes/1', detail: 'not granted' }] });
  expect(errorsOf(problem)).toEqual({ scopes: 'not granted' });
  expect([errorsOf(undefined), errorsOf(new Error('x'))]).toEqual([{}, {}]);
});

test('a key that expires later shows the day', () => {
  expect(dateOf('2027-02-14T12:00:00Z')).toContain('2027');
});

test('keys that work come first, the newest at the top', () => {
  const keys = [key('old', 'active', '2026-01-01T00:00:00Z'), key('gone', 'revoked', '2026-05-01T00:00:00Z'), key('new', 'active', '2026-03-01T00:00:00Z')];
  expect(sorted(keys).map(({ name }) => name)).toEqual(['new', 'old', 'gone']);
});
