import { useAgents } from '@/api/useAgents';
import { AgentBadge } from '@/design';

/** An agent by its id. */
export function Agent({ id, strong }: { id: string; strong?: boolean }) {
  return <AgentBadge {...useAgents().face(id)} {...(strong && { strong })} />;
}
