import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import { api, data } from '@/api/client';

export const skillQueries = {
  list: () =>
    infiniteQueryOptions({
      queryKey: ['skills'],
      queryFn: ({ pageParam }) => data(api.GET('/api/v1/skills', { params: { query: { limit: 100, ...(pageParam && { cursor: pageParam }) } } })),
      initialPageParam: '',
      getNextPageParam: (page) => page.next_cursor ?? undefined,
    }),
  skill: (skill: string) => queryOptions({ queryKey: ['skills', 'one', skill], queryFn: () => data(api.GET('/api/v1/skills/{skill}', { params: { path: { skill } } })) }),
};
