import { sentence } from '@/api/problem';
import { Button, ErrorNote } from '@/design';
import { Forbidden, isForbidden } from './Forbidden';

/** In place of data that could not be loaded: why, and a button that tries again. After a 403 that would not help, so the missing permission is named. */
export function LoadError({ what, error, onRetry }: { what: string; error: unknown; onRetry: () => void }) {
  if (isForbidden(error)) return <Forbidden error={error} />;
  return <ErrorNote title={`Could not load ${what}.`} action={<Button size="small" onClick={onRetry}>Retry</Button>}>{sentence(error)}</ErrorNote>;
}
