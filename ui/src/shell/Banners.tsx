import { useQuery } from '@tanstack/react-query';
import { TriangleAlert, WifiOff } from 'lucide-react';
import { useState } from 'react';
import { Link, useLocation } from 'wouter';
import { Problem, sentence } from '@/api/problem';
import { queries } from '@/api/queries';
import { useMay } from '@/api/useMay';
import { Button, cx } from '@/design';
import styles from './Banners.module.css';

/** A server that does not answer makes every screen stale or empty: says so, and asks again. */
export function ConnectionBanner() {
  const { data, error: latest, isSuccess, refetch, isFetching } = useQuery({ ...queries.me(), refetchInterval: ({ state }) => (state.error ? 5_000 : 15_000) });
  // While it is asked again there is no error; the banner stays until there is an answer.
  const [error, setError] = useState(latest);
  if (latest ? latest !== error : isSuccess && error) setError(latest);
  const [location] = useLocation();
  // A conversation that is shown says itself that it reconnects.
  if (!error || (error instanceof Problem && error.status === 401) || (data && location.startsWith('/threads/'))) return null;
  return (
    <div role="alert" className={cx(styles.banner, styles.danger)}>
      <WifiOff size={15} aria-hidden className={styles.icon} />
      <span className={styles.text}>{sentence(error)} {data && 'What is shown may be out of date. '}Trying again every few seconds.</span>
      <Button size="small" busy={isFetching} onClick={() => void refetch()}>Retry now</Button>
    </div>
  );
}

/** A faulty agent file does not stop the server; it does mean that a change is not active. */
export function RosterBanner() {
  const may = useMay();
  const [location] = useLocation();
  const { data } = useQuery({ ...queries.roster(), enabled: may('agent:read') });
  // The list of agents shows the errors themselves.
  if (data?.status !== 'last_good' || location === '/agents') return null;
  const errors = data.diagnostics.filter(({ severity }) => severity === 'error').length;
  return (
    <div role="status" className={cx(styles.banner, styles.warning)}>
      <TriangleAlert size={15} aria-hidden className={styles.icon} />
      <span className={styles.text}>{errors === 1 ? 'An agent file has an error' : 'Agent files have errors'}; the last good version is active.</span>
      <Link href="/agents" className={styles.link}>{errors === 1 ? 'Show the error' : 'Show the errors'}</Link>
    </div>
  );
}
