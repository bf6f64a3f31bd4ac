import { Activity, Bot, ChartColumn, FileClock, Inbox, KeyRound, ListTree, Network, Route, Sparkles, type LucideIcon } from 'lucide-react';

export interface ScreenEntry { path: string; title: string; icon: LucideIcon; permission: string }

/** The screens beside the chat, in the order of the navigation. An entry is shown to those who have its permission. */
export const SCREENS: ScreenEntry[] = [
  { path: '/agents', title: 'Agents', icon: Bot, permission: 'agent:read' },
  { path: '/graph', title: 'Graph', icon: Network, permission: 'agent:read' },
  { path: '/runs', title: 'Runs', icon: ListTree, permission: 'thread:read' },
  { path: '/inbox', title: 'Inbox', icon: Inbox, permission: 'thread:read' },
  { path: '/skills', title: 'Skills', icon: Sparkles, permission: 'agent:read' },
  { path: '/usage', title: 'Usage', icon: ChartColumn, permission: 'usage:read' },
  { path: '/patterns', title: 'Patterns', icon: Route, permission: 'trace:read' },
  { path: '/audit', title: 'Audit', icon: FileClock, permission: 'audit:read' },
  { path: '/keys', title: 'Keys', icon: KeyRound, permission: 'admin:keys' },
  { path: '/health', title: 'Health', icon: Activity, permission: 'agent:read' },
];

/** Whether a screen, or a page below it, is open. */
export function isOpen(path: string, location: string): boolean {
  return location === path || location.startsWith(`${path}/`);
}
