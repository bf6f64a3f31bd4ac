import { queryOptions } from '@tanstack/react-query';
import { api, data, type Schemas } from '@/api/client';

export type Prompt = Schemas['PromptView'];
export type Via = 'call' | 'delegate' | 'advisor' | 'member' | 'handoff' | 'route' | 'transfer';
export interface PromptInput { message?: string; from?: string; via?: Via; thread_id?: string }

/** Below `['agents']`, so that a reload of the agent files refreshes it too. */
export const agentQuery = (agent: string) =>
  queryOptions({ queryKey: ['agents', 'detail', agent], queryFn: () => data(api.GET('/api/v1/agents/{agent}', { params: { path: { agent } } })), staleTime: 15_000 });

export const promptQuery = (agent: string, query: PromptInput) =>
  queryOptions({
    queryKey: ['agents', 'prompt', agent, query],
    queryFn: () => data(api.GET('/api/v1/agents/{agent}/prompt', { params: { path: { agent }, query } })),
    staleTime: 0,
  });
