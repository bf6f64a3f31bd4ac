import { useQuery } from '@tanstack/react-query';
import { Bot } from 'lucide-react';
import { Problem } from '@/api/problem';
import type { AgentDetail } from '@/api/types';
import { useMay } from '@/api/useMay';
import { useRoster } from '@/api/useRoster';
import { EmptyState, LinkButton, Page, Skeleton, Tabs, type Tab } from '@/design';
import { useSearchState } from '@/lib/useSearchState';
import { LoadError } from '@/shell/LoadError';
import { AgentActions, AgentTitle } from './AgentHeader';
import { DefinitionTab } from './DefinitionTab';
import { DiagnosticsTab } from './DiagnosticsTab';
import { OverviewTab } from './OverviewTab';
import { PromptTab } from './PromptTab';
import { agentQuery } from './queries';
import { ToolsTab } from './ToolsTab';
import { TryTab } from './TryTab';

export default function AgentScreen({ agentId }: { agentId: string }) {
  useRoster();
  const { data: agent, error, refetch } = useQuery(agentQuery(agentId));
  if (agent) return <Detail key={agentId} agent={agent} />;
  if (error instanceof Problem && error.status === 404) {
    return <Page title="Agent not found"><EmptyState icon={Bot} title="This agent does not exist" action={<LinkButton href="/agents">Show all agents</LinkButton>}>There is no agent <code>{agentId}</code>. It may have been renamed or removed, or its file has an error.</EmptyState></Page>;
  }
  return (
    <Page title={agentId}>
      {error ? <LoadError what="the agent" error={error} onRetry={() => void refetch()} /> : <><Skeleton rows={1} /><Skeleton rows={3} height={128} /></>}
    </Page>
  );
}

function Detail({ agent }: { agent: AgentDetail }) {
  const may = useMay();
  const [params, set] = useSearchState();
  const tabs: Tab[] = [
    { id: 'overview', label: 'Overview', content: () => <OverviewTab agent={agent} /> },
    { id: 'tools', label: 'Tools', content: () => <ToolsTab agent={agent} /> },
    { id: 'prompt', label: 'Prompt', content: () => <PromptTab agent={agent} /> },
    { id: 'definition', label: 'Definition', content: () => <DefinitionTab agent={agent} /> },
    { id: 'diagnostics', label: 'Diagnostics', count: agent.diagnostics.length, content: () => <DiagnosticsTab agent={agent} /> },
    ...(may('thread:write') ? [{ id: 'try', label: 'Try it', content: () => <TryTab agent={agent} /> }] : []),
  ];
  return (
    <Page title={<AgentTitle agent={agent} />} lead={agent.description} actions={<AgentActions agent={agent} />}>
      <Tabs label={`About ${agent.display_name}`} tabs={tabs} active={params.get('tab') ?? 'overview'} onChange={(tab) => set({ tab: tab === 'overview' ? undefined : tab })} />
    </Page>
  );
}
