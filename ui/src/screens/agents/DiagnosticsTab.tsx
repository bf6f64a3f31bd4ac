import { CircleCheck } from 'lucide-react';
import type { AgentDetail } from '@/api/types';
import { EmptyState } from '@/design';
import { DiagnosticList } from './DiagnosticList';

export function DiagnosticsTab({ agent }: { agent: AgentDetail }) {
  if (agent.diagnostics.length === 0) return <EmptyState icon={CircleCheck} title="No findings">The file {agent.file && <code>{agent.file}</code>} is free of errors, warnings and notes.</EmptyState>;
  return <DiagnosticList diagnostics={agent.diagnostics} />;
}
