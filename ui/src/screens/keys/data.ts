import { queryOptions } from '@tanstack/react-query';
import { api, data, type Schemas } from '@/api/client';
import { Problem } from '@/api/problem';
import type { Tone } from '@/design';

export type Key = Schemas['KeyView'];
export type CreatedKey = Schemas['CreatedKey'];
export type NewKey = Schemas['NewKeyBody'];

/** The roles of the server. Those of its configuration are typed. */
export const ROLES = [
  { value: 'viewer', hint: 'Reads own conversations and agents' },
  { value: 'user', hint: 'Also sends messages and decides own approvals' },
  { value: 'builder', hint: 'Also creates skills and agents' },
  { value: 'operator', hint: 'Reads all conversations, usage and the audit trail' },
  { value: 'admin', hint: 'Everything in this tenant' },
] as const;

export const EXPIRIES = [
  { value: '30', label: 'In 30 days' },
  { value: '90', label: 'In 90 days' },
  { value: '365', label: 'In 1 year' },
  { value: '', label: 'Never' },
] as const;

/** What the form holds. */
export interface Draft { name: string; user: string; roles: string[]; otherRoles: string; scopes: string; expires: string }

export const EMPTY: Draft = { name: '', user: '', roles: ['user'], otherRoles: '', scopes: '', expires: '90' };

/** Words separated by spaces or commas. */
export const words = (text: string) => text.split(/[\s,]+/).filter(Boolean);

/** The request for a draft; empty fields are left out. */
export function requestOf(draft: Draft, now: number): NewKey {
  const user = draft.user.trim();
  const scopes = words(draft.scopes);
  return {
    name: draft.name.trim(),
    roles: [...draft.roles, ...words(draft.otherRoles)],
    ...(user ? { user_id: user } : {}),
    ...(scopes.length > 0 ? { scopes } : {}),
    ...(draft.expires ? { expires_at: new Date(now + Number(draft.expires) * 86_400_000).toISOString() } : {}),
  };
}

/** The messages of a refused request by field. */
export function errorsOf(error: unknown): Partial<Record<'name' | 'user_id' | 'roles' | 'scopes' | 'expires_at', string>> {
  const errors = error instanceof Problem && Array.isArray(error.body.errors) ? (error.body.errors as { pointer: string; detail: string }[]) : [];
  return Object.fromEntries(errors.map(({ pointer, detail }) => [pointer.split('/')[1] ?? '', detail]));
}

export const STATUS: Record<Key['status'], { label: string; tone: Tone }> = {
  active: { label: 'Active', tone: 'success' },
  expired: { label: 'Expired', tone: 'warning' },
  revoked: { label: 'Revoked', tone: 'neutral' },
};

/** The day of a moment, in the local time zone. */
export const dateOf = (at: string) => new Date(at).toLocaleDateString(undefined, { dateStyle: 'medium' });

/** Keys that work come first, and of those the newest. */
export function sorted(keys: Key[]): Key[] {
  const rank = (key: Key) => (key.status === 'active' ? 0 : 1);
  return [...keys].sort((one, two) => rank(one) - rank(two) || two.created_at.localeCompare(one.created_at));
}

export const keysQuery = () => queryOptions({ queryKey: ['keys'], queryFn: () => data(api.GET('/api/v1/keys')) });

export const createKey = (body: NewKey) => data(api.POST('/api/v1/keys', { body }));

export const revokeKey = (key_id: string) => data(api.DELETE('/api/v1/keys/{key_id}', { params: { path: { key_id } } }));
