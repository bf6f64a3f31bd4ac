import { Lock } from 'lucide-react';
import { Problem, sentence } from '@/api/problem';
import { Button, EmptyState, ErrorNote } from '@/design';

/** What could not be loaded, and why. A refusal names the missing permission; trying again would not help there. */
export function LoadError({ what, error, onRetry }: { what: string; error: unknown; onRetry: () => void }) {
  if (error instanceof Problem && error.status === 403) {
    return <EmptyState icon={Lock} title={`You may not see ${what}`}>{sentence(error)} Ask an administrator for a role that has it.</EmptyState>;
  }
  return <ErrorNote title={`Could not load ${what}.`} action={<Button size="small" onClick={onRetry}>Retry</Button>}>{sentence(error)}</ErrorNote>;
}
