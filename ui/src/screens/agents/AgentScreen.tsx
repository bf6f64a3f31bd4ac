import { Page } from '@/design';

export default function AgentScreen({ agentId }: { agentId: string }) {
  return <Page title={agentId}>Not built yet</Page>;
}
