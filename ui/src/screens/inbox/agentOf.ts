/** Parts of a path that name a place in an agent's work; all others name an agent. */
const PLACES = new Set(['turn', 'tool', 'round', 'state', 'entry', 'result', 'results', 'refused']);

/** The agent that makes the call at a path such as `assistant/turn:2/tool:1/call:research/turn:1/tool:1`: the last one that it names. */
export function agentOf(path: string): string {
  const agents = path.split('/').flatMap((part) => {
    const [kind = '', name] = part.split(':', 2);
    if (PLACES.has(kind)) return [];
    return [name ?? kind];
  });
  return agents.at(-1) ?? path;
}
