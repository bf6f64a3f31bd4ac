import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef } from 'react';
import { queries } from './queries';

/** The state of the agent files, polled. When a new version is loaded, everything that was read from the old one is read again. */
export function useRoster() {
  const client = useQueryClient();
  const roster = useQuery(queries.roster());
  const known = useRef<string>(undefined);
  const loadedAt = roster.data?.loaded_at;
  useEffect(() => {
    if (loadedAt && known.current && known.current !== loadedAt) {
      void client.invalidateQueries({ queryKey: ['agents'] });
      void client.invalidateQueries({ queryKey: ['graph'] });
    }
    known.current = loadedAt ?? known.current;
  }, [client, loadedAt]);
  return roster;
}
