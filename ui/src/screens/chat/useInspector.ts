import { useState } from 'react';
import { useMedia } from '@/lib/useMedia';
import { useRemembered } from './storage';

/** Below this width the inspector is a sheet over the conversation. */
export const NARROW = '(max-width: 899.98px)';

/** Whether the inspector is open. As a panel it is remembered; as a sheet it covers the conversation and never opens by itself. */
export function useInspector(): [boolean, (isOpen: boolean) => void] {
  const isNarrow = useMedia(NARROW);
  const [panel, setPanel] = useRemembered('baton.inspector', 'closed');
  const [isSheetOpen, setIsSheetOpen] = useState(false);
  return isNarrow ? [isSheetOpen, setIsSheetOpen] : [panel === 'open', (isOpen) => setPanel(isOpen ? 'open' : 'closed')];
}
