import { useEffect, useState } from 'react';

/** The time, read again every `interval` milliseconds; never with 0. */
export function useNow(interval: number): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    if (interval <= 0) return;
    const timer = setInterval(() => setNow(Date.now()), interval);
    return () => clearInterval(timer);
  }, [interval]);
  return now;
}
