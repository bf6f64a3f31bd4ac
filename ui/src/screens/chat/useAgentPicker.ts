import { useId, useState, type KeyboardEvent } from 'react';
import { useAgents, type Agent } from '@/api/useAgents';

export interface Picker {
  isOpen: boolean;
  id: string;
  activeId: string | undefined;
  options: Agent[];
  at: number;
  choose: (agent: string) => void;
  close: () => void;
  toggle: () => void;
  /** True when the key was for the list. */
  onKey: (event: KeyboardEvent) => boolean;
}

/** The list of agents that opens at `@`. */
export function useAgentPicker({ query, onChoose, onClose, onToggle }: { query: string | undefined; onChoose: (agent: string) => void; onClose: () => void; onToggle: () => void }): Picker {
  const id = useId();
  const { agents } = useAgents();
  const [at, setAt] = useState(0);
  const isOpen = query !== undefined;
  const options = isOpen ? matching(agents, query) : [];
  const active = Math.min(at, Math.max(0, options.length - 1));
  const choose = (agent: string) => {
    setAt(0);
    onChoose(agent);
  };
  const onKey = (event: KeyboardEvent): boolean => {
    if (!isOpen) return false;
    const count = Math.max(1, options.length);
    const next = { ArrowDown: (active + 1) % count, ArrowUp: (active - 1 + count) % count }[event.key];
    const chosen = options[active];
    if (next !== undefined) setAt(next);
    else if (event.key === 'Escape') onClose();
    else if ((event.key === 'Enter' || event.key === 'Tab') && chosen) choose(chosen.id);
    else return false;
    event.preventDefault();
    return true;
  };
  return { isOpen, id, activeId: options[active] && `${id}-${options[active].id}`, options, at: active, choose, close: onClose, toggle: onToggle, onKey };
}

/** Agents whose name or id contains the word; those whose name begins with it come first. */
export function matching(agents: Agent[], query: string): Agent[] {
  const word = query.toLowerCase();
  const rank = ({ id, display_name }: Agent) => {
    const places = [id, display_name].map((name) => name.toLowerCase().indexOf(word)).filter((place) => place >= 0);
    return places.length === 0 ? -1 : Math.min(...places) === 0 ? 0 : 1;
  };
  return agents.filter((agent) => !agent.badge.hidden && rank(agent) >= 0).sort((a, b) => rank(a) - rank(b));
}

/** The word after an `@` right before the caret. */
export function mentionAt(text: string, caret: number): string | undefined {
  return /(?:^|\s)@([\p{L}\p{N}_-]*)$/u.exec(text.slice(0, caret))?.[1];
}
