import { useEffect, useEffectEvent } from 'react';
import { useLocation } from 'wouter';
import { useMay } from '@/api/useMay';
import { hasCommand } from '@/lib/keys';

/** ⌘K opens the command palette, ⇧⌘O starts a conversation; Ctrl in place of ⌘ where there is none. */
export function useShortcuts({ onPalette }: { onPalette: () => void }): void {
  const [, navigate] = useLocation();
  const may = useMay();
  const onKeyDown = useEffectEvent((event: KeyboardEvent) => {
    if (!hasCommand(event) || event.altKey) return;
    const key = event.key.toLowerCase();
    if (key === 'k' && !event.shiftKey) onPalette();
    else if (key === 'o' && event.shiftKey && may('thread:write')) navigate('/');
    else return;
    event.preventDefault();
  });
  useEffect(() => {
    addEventListener('keydown', onKeyDown);
    return () => removeEventListener('keydown', onKeyDown);
  }, []);
}
