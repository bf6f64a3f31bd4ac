import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import type { Schemas } from './client';
import { queries } from './queries';

export type Agent = Schemas['AgentView'];

/** How an agent is shown: its name, colour and icon. Agents that are gone are shown by their id, hidden ones by a neutral name. */
export interface AgentFace { id: string; name: string; color?: string | undefined; icon?: string | undefined }

export function useAgents(): { agents: Agent[]; face: (id: string) => AgentFace } {
  const { data } = useQuery(queries.agents());
  return useMemo(() => {
    const agents = data ?? [];
    const byId = new Map(agents.map((agent) => [agent.id, agent]));
    const face = (id: string): AgentFace => {
      const agent = byId.get(id);
      if (agent?.visible === false) return { id, name: 'Assistant' };
      return agent ? { id, name: agent.display_name, color: agent.badge.color, icon: agent.badge.icon } : { id, name: id };
    };
    return { agents, face };
  }, [data]);
}
