import type { LucideIcon } from 'lucide-react';
import type { AgentFace } from '@/api/useAgents';
import { fuzzyMatch } from '@/lib/fuzzy';

export interface Command {
  id: string;
  group: string;
  title: string;
  /** Further words that find it, by their beginning. */
  keywords?: string;
  /** Shown behind the title. */
  detail?: string | undefined;
  shortcut?: string;
  icon: LucideIcon;
  face?: AgentFace;
  run: () => void;
  /** Found by the server already: it stays, also where its title does not match. */
  isFound?: boolean;
}

export interface CommandGroup { title: string; commands: Command[] }

/** At most this many of a group, so that every group stays in sight. */
const PER_GROUP = 10;

/** The commands that match, by group. The group with the best match comes first. */
export function groupCommands(commands: Command[], query: string): CommandGroup[] {
  const groups = new Map<string, { command: Command; score: number }[]>();
  for (const command of commands) {
    const score = scoreOf(command, query);
    if (score === undefined) continue;
    groups.set(command.group, [...(groups.get(command.group) ?? []), { command, score }]);
  }
  return [...groups]
    .map(([title, found]) => ({ title, found: found.sort((left, right) => right.score - left.score) }))
    .sort((left, right) => right.found[0]!.score - left.found[0]!.score)
    .map(({ title, found }) => ({ title, commands: found.slice(0, PER_GROUP).map(({ command }) => command) }));
}

function scoreOf({ title, keywords, isFound }: Command, query: string): number | undefined {
  const byTitle = fuzzyMatch(query, title)?.score;
  if (byTitle !== undefined || isFound) return byTitle ?? -1;
  const words = keywords?.toLowerCase().split(' ') ?? [];
  return words.some((word) => word.startsWith(query.toLowerCase())) ? 0 : undefined;
}
