import { useQuery } from '@tanstack/react-query';
import { useEffect } from 'react';
import { useLocation } from 'wouter';
import { pendingApprovalCount } from '@/api/approvals';
import type { Me } from '@/api/types';
import { useAgents } from '@/api/useAgents';
import { useMay } from '@/api/useMay';
import { shortId } from '@/lib/format';
import { SCREENS } from './screens';
import { useOwnThreads } from './useOwnThreads';

/** Names the tab after what it shows: the conversation, the agent or the screen. What waits for a decision is counted before it. */
export function useDocumentTitle(me: Me | undefined): void {
  const [location] = useLocation();
  const { threads } = useOwnThreads(me);
  const { face } = useAgents();
  const [, section = '', id = ''] = location.split('/').map(decodeURIComponentSafely);
  const screen = SCREENS.find((entry) => entry.path === `/${section}`)?.title;
  const title = () => {
    if (section === '') return 'New conversation';
    if (section === 'threads') return threads.find((thread) => thread.thread_id === id)?.title || 'Conversation';
    if (!screen) return 'Page not found';
    if (!id) return screen;
    if (section === 'agents') return `${face(id).name} · Agents`;
    if (section === 'runs') return `Run ${shortId(id)}`;
    return `${id} · ${screen}`;
  };
  const may = useMay();
  const { data: waiting } = useQuery({ ...pendingApprovalCount(location), enabled: may('thread:read') });
  const text = `${waiting ? `(${waiting}) ` : ''}${title()} · Baton`;
  useEffect(() => {
    document.title = text;
  }, [text]);
}

function decodeURIComponentSafely(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
