import { Lock } from 'lucide-react';
import type { ReactNode } from 'react';
import type { Steps } from '@/api/types';
import { Button, EmptyState, ErrorNote, Skeleton } from '@/design';
import type { StepsState } from '../detail/useSteps';

/** Shows what needs the recorded steps, or why they are not there. */
export function StepsGate({ steps, what, children }: { steps: StepsState; what: string; children: (steps: Steps) => ReactNode }) {
  switch (steps.state) {
    case 'loading': return <Skeleton rows={6} height={28} />;
    case 'failed': return <ErrorNote action={<Button size="small" onClick={steps.retry}>Retry</Button>}>{steps.reason}</ErrorNote>;
    case 'denied': return <EmptyState icon={Lock} title={`You may not see the ${what}`}>{steps.reason} Operators and administrators have it; ask an administrator for one of these roles.</EmptyState>;
    case 'ready': return children(steps.steps);
  }
}
