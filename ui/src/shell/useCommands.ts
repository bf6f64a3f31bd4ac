import { AtSign, Bot, BookOpen, LogOut, MessageSquare, Plus } from 'lucide-react';
import { useMemo } from 'react';
import { useLocation } from 'wouter';
import type { Me } from '@/api/types';
import { useAgents } from '@/api/useAgents';
import { useMay } from '@/api/useMay';
import { shortcut } from '@/lib/keys';
import { useDebounced } from '@/lib/useDebounced';
import { signOutAndReload } from './Account';
import type { Command } from './commands';
import { SCREENS } from './screens';
import { setTheme } from './theme';
import { THEMES } from './ThemeSwitch';
import { useOwnThreads } from './useOwnThreads';

const RECENT = 5;
const AGENTS_AT_FIRST = 4;

/** Everything that the palette offers to this person. Conversations are searched by the server. */
export function useCommands(me: Me | undefined, query: string): { commands: Command[]; isSearching: boolean } {
  const q = useDebounced(query.trim(), 200);
  const { threads, isFetching, isPlaceholderData } = useOwnThreads(me, q);
  const actions = useActions(me);
  const agents = useAgentCommands();
  const [, navigate] = useLocation();
  const commands = useMemo(() => {
    const found = threads.slice(0, q ? 8 : RECENT).map((thread): Command => ({
      id: `thread/${thread.thread_id}`,
      group: q ? 'Conversations' : 'Recent conversations',
      title: thread.title || 'Untitled conversation',
      icon: MessageSquare,
      isFound: q !== '',
      run: () => navigate(`/threads/${thread.thread_id}`),
    }));
    const [first, ...rest] = actions;
    return [...(first ? [first] : []), ...found, ...rest, ...(query.trim() ? agents : agents.slice(0, AGENTS_AT_FIRST))];
  }, [threads, actions, agents, q, query, navigate]);
  return { commands, isSearching: query.trim() !== q || (isFetching && isPlaceholderData) };
}

function useActions(me: Me | undefined): Command[] {
  const may = useMay();
  const [, navigate] = useLocation();
  return [
    ...(may('thread:write') ? [{ id: 'new', group: 'Actions', title: 'New conversation', keywords: 'chat start write', icon: Plus, shortcut: shortcut('O', true), run: () => navigate('/') }] : []),
    ...SCREENS.filter((screen) => may(screen.permission)).map(({ path, title, icon }) => ({ id: path, group: 'Go to', title, icon, run: () => navigate(path) })),
    ...THEMES.map(({ theme, label, icon }) => ({ id: `theme/${theme}`, group: 'Settings', title: `Use ${label.toLowerCase()}`, keywords: 'switch appearance mode', icon, run: () => setTheme(theme) })),
    { id: 'docs', group: 'Settings', title: 'Open API docs', keywords: 'help reference openapi', icon: BookOpen, run: () => void open('/docs', '_blank', 'noreferrer') },
    ...(me?.auth === 'required' ? [{ id: 'sign-out', group: 'Settings', title: 'Sign out', keywords: 'log out', icon: LogOut, run: signOutAndReload }] : []),
  ];
}

/** Each agent twice: to ask it, and to read about it. */
function useAgentCommands(): Command[] {
  const may = useMay();
  const [, navigate] = useLocation();
  const { agents, face } = useAgents();
  if (!may('agent:read')) return [];
  const pages = agents.map((agent): Command => ({ id: `agent/${agent.id}`, group: 'Agents', title: agent.display_name, keywords: `${agent.id} open page`, detail: 'Open its page', icon: Bot, face: face(agent.id), run: () => navigate(`/agents/${encodeURIComponent(agent.id)}`) }));
  if (!may('thread:write')) return pages;
  const asks = agents.filter((agent) => !agent.badge.hidden).map((agent): Command => ({ id: `ask/${agent.id}`, group: 'Agents', title: `Ask @${agent.display_name}`, keywords: agent.id, detail: 'New conversation', icon: AtSign, face: face(agent.id), run: () => navigate(`/?agent=${encodeURIComponent(agent.id)}`) }));
  return [...asks, ...pages];
}
