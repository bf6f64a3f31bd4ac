import { useQuery } from '@tanstack/react-query';
import { Wrench } from 'lucide-react';
import type { Schemas } from '@/api/client';
import type { AgentDetail } from '@/api/types';
import { Badge, Card, cx, EmptyState, Facts, Skeleton, Table } from '@/design';
import { LoadError } from '@/shell/LoadError';
import styles from './Agent.module.css';
import { definitionOf, names, type Definition } from './definition';
import { promptQuery } from './queries';
import { approvalOf } from './tools';

/** What its model can use: what the file allows, and what it is offered in the end. */
export function ToolsTab({ agent }: { agent: AgentDetail }) {
  const definition = definitionOf(agent);
  const { data: prompt, error, refetch } = useQuery({ ...promptQuery(agent.id, {}), enabled: agent.kind === 'local' });
  return (
    <div className={styles.column}>
      <h2>Offered to the model</h2>
      {agent.kind === 'remote' ? <p className="soft">This agent runs on another server, which decides about its tools.</p>
        : error ? <LoadError what="the tools" error={error} onRetry={() => void refetch()} />
        : prompt ? <Offered tools={prompt.tools} definition={definition} /> : <Skeleton rows={4} height={32} />}
      <Card><h2 className={styles.heading}>Rules of the file</h2><Facts rows={rules(definition)} /></Card>
    </div>
  );
}

function rules({ tools, approvals, mcp_servers, skills }: Definition): [string, string][] {
  const servers = Array.isArray(mcp_servers) ? mcp_servers : Object.keys(mcp_servers ?? {});
  return [
    ['Allowed', names(tools?.allow ?? [])],
    ['Not allowed', names(tools?.deny ?? [])],
    ['Read only', tools?.read_only ? 'Yes' : 'No'],
    ['Wait for approval', names(approvals?.ask ?? [])],
    ['Refused', names(approvals?.deny ?? [])],
    ['Run without asking', names(approvals?.auto ?? [])],
    ['MCP servers', names(servers)],
    ['Skills', skills === 'all' ? 'All' : names(skills ?? [])],
  ];
}

function Offered({ tools, definition }: { tools: Schemas['ToolView'][]; definition: Definition }) {
  if (tools.length === 0) return <EmptyState icon={Wrench} title="No tools">Add names under <code>tools</code> in the agent file to let this agent search, read or write.</EmptyState>;
  return (
    <Table label="Tools" rows={tools} rowKey={(tool) => tool.name} columns={[
      { key: 'name', title: 'Tool', cell: (tool) => <code className={styles.key}>{tool.name}</code> },
      { key: 'description', title: 'Description', wide: true, cell: (tool) => <span className={styles.clamp}>{tool.description}</span> },
      { key: 'source', title: 'From', wide: true, cell: (tool) => <span className={styles.nowrap}>{sourceOf(tool.name, definition)}</span> },
      { key: 'approval', title: 'Approval', cell: (tool) => <Approval rule={approvalOf(tool.name, definition.approvals)} /> },
    ]} />
  );
}

function sourceOf(name: string, { tools }: Definition): string {
  if (/^mcp[:_]/.test(name)) return 'MCP server';
  return tools?.allow?.includes(name) ? 'Agent file' : 'Baton';
}

function Approval({ rule }: { rule: ReturnType<typeof approvalOf> }) {
  if (rule === 'ask') return <Badge tone="warning">Needs approval</Badge>;
  if (rule === 'deny') return <Badge tone="danger">Refused</Badge>;
  return <span className={cx('soft', styles.nowrap)}>{rule === 'auto' ? 'Automatic' : 'Default'}</span>;
}
