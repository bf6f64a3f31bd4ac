import { sentence } from '@/api/problem';
import { Button, ErrorNote } from '@/design';
import { Forbidden, isForbidden } from '@/shell/Forbidden';

/** What could not be loaded, and why. A refusal names the missing permission; trying again would not help there. */
export function LoadError({ what, error, onRetry }: { what: string; error: unknown; onRetry: () => void }) {
  if (isForbidden(error)) return <Forbidden error={error} />;
  return <ErrorNote title={`Could not load ${what}.`} action={<Button size="small" onClick={onRetry}>Retry</Button>}>{sentence(error)}</ErrorNote>;
}
