import { queryOptions } from '@tanstack/react-query';
import { api, data } from '@/api/client';

export const chatQueries = {
  artifacts: (threadId: string) => queryOptions({
    queryKey: ['threads', threadId, 'artifacts'],
    queryFn: () => data(api.GET('/api/v1/threads/{thread_id}/artifacts', { params: { path: { thread_id: threadId } } })),
  }),
};
