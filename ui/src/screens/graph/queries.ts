import { queryOptions } from '@tanstack/react-query';
import { api, data, type Schemas } from '@/api/client';

export type Graph = Schemas['GraphBody'];
export type GraphNode = Schemas['NodeBody'];
export type GraphEdge = Schemas['EdgeBody'];

export const graphQuery = () => queryOptions({ queryKey: ['graph'], queryFn: () => data(api.GET('/api/v1/graph')), staleTime: 15_000 });

export const latestRunsQuery = () =>
  queryOptions({ queryKey: ['runs', 'latest'], queryFn: () => data(api.GET('/api/v1/runs', { params: { query: { limit: 20 } } })).then((page) => page.data), refetchInterval: 15_000 });
