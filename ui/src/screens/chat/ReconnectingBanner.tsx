import { LoaderCircle } from 'lucide-react';
import { useEffect, useState } from 'react';
import type { StreamStatus } from '@/api/stream';
import styles from './Conversation.module.css';

const SHOWN_AFTER = 5000;

/** Says so when the stream has been down for five seconds. */
export function ReconnectingBanner({ status }: { status: StreamStatus }) {
  const isDown = status === 'connecting' || status === 'waiting';
  const [isShown, setIsShown] = useState(false);
  useEffect(() => {
    if (!isDown) return setIsShown(false);
    const timer = setTimeout(() => setIsShown(true), SHOWN_AFTER);
    return () => clearTimeout(timer);
  }, [isDown]);
  if (!isShown) return null;
  return <div role="status" className={styles.banner}><LoaderCircle size={14} aria-hidden />Reconnecting… your messages are safe</div>;
}
