import type { Me } from '@/api/types';
import { useMay } from '@/api/useMay';
import { useThreads } from './threads';

/** The signed-in person's threads. The server shows others' threads to those with `trace:read` alone, so only for them they are filtered out. */
export function useOwnThreads(me: Me | undefined, q = '', allUsers = false) {
  const may = useMay();
  const userId = may('trace:read') && !allUsers ? me?.user_id : undefined;
  return useThreads({ q, userId }, me !== undefined && may('thread:read'));
}
