import { Lock } from 'lucide-react';
import { Problem, sentence } from '@/api/problem';
import { EmptyState } from '@/design';

/** Whether the server refused because a permission is missing. */
export function isForbidden(error: unknown): error is Problem {
  return error instanceof Problem && error.status === 403;
}

/** In place of a screen that the role does not permit: says which permission is missing. */
export function Forbidden({ error, permission }: { error?: Problem | undefined; permission?: string }) {
  const missing = permission ?? (typeof error?.body.permission === 'string' ? error.body.permission : undefined);
  if (!missing) return <EmptyState icon={Lock} title="Access denied">{error ? sentence(error) : 'Your role does not permit this.'}</EmptyState>;
  return (
    <EmptyState icon={Lock} title="Access denied">
      Your role lacks the permission <code>{missing}</code>. Ask an administrator for a role that has it.
    </EmptyState>
  );
}
