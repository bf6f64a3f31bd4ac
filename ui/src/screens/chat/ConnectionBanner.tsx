import { LoaderCircle } from 'lucide-react';
import { useEffect, useState } from 'react';
import type { StreamStatus } from '@/api/stream';
import styles from './Conversation.module.css';

const PATIENCE = 5000;

/** Says so when the stream has been down for five seconds. */
export function ConnectionBanner({ status }: { status: StreamStatus }) {
  const isDown = status === 'connecting' || status === 'waiting';
  const [isShown, setIsShown] = useState(false);
  useEffect(() => {
    if (!isDown) return setIsShown(false);
    const timer = setTimeout(() => setIsShown(true), PATIENCE);
    return () => clearTimeout(timer);
  }, [isDown]);
  if (!isShown) return null;
  return <div role="status" className={styles.banner}><LoaderCircle size={14} aria-hidden />Reconnecting… your messages are safe</div>;
}
