import type { Agent } from '@/api/useAgents';
import type { Diagnostic } from '@/api/types';

export const FILTERS = [
  { id: 'all', label: 'All' },
  { id: 'specialists', label: 'Take handoffs' },
  { id: 'remote', label: 'Remote' },
  { id: 'hidden', label: 'Hidden' },
] as const;
export type FilterId = (typeof FILTERS)[number]['id'];

export function filterId(text: string | null): FilterId {
  return FILTERS.find((filter) => filter.id === text)?.id ?? 'all';
}

export function passes(agent: Agent, filter: FilterId): boolean {
  if (filter === 'specialists') return agent.holds_threads;
  if (filter === 'remote') return agent.kind === 'remote';
  return filter === 'all' || agent.badge.hidden;
}

/** Every word of the search occurs in the name, id, description, model or tools. */
export function matches(agent: Agent, search: string): boolean {
  const text = [agent.display_name, agent.id, agent.description, ...agent.model, ...(agent.tools ?? [])].join('\n').toLowerCase();
  return search.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

/**
 * The findings of an agent's file. The list of agents does not name files, so they are matched as the server names agents without a
 * `name`: by the file name without its endings.
 */
export function findingsOf(agent: Agent, diagnostics: Diagnostic[]): Diagnostic[] {
  const names = new Set([agent.id, slug(agent.display_name)]);
  return diagnostics.filter((diagnostic) => names.has(slug(stem(diagnostic.file))));
}

function stem(file: string): string {
  return (file.split('/').pop() ?? file).replace(/(\.agent|\.chatmode)?\.md$/i, '');
}

function slug(text: string): string {
  return text.trim().toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/^-|-$/g, '');
}
