import type { Call, Session, Usage } from '@/api/types';

/** Test data: the least that a session and a call have. */
export const noUsage: Usage = { input_tokens: 0, output_tokens: 0, cached_tokens: 0, cache_write_tokens: 0, reasoning_tokens: 0, cost_usd: '0.00', cost_known: true, estimated: false };

export function at(milliseconds: number): string {
  return new Date(milliseconds).toISOString();
}

export function session(id: string, from: number, to: number | undefined, more: Partial<Session> = {}): Session {
  return { session_id: id, agent: id, path: id, status: to === undefined ? 'running' : 'completed', started_at: at(from), finished_at: to === undefined ? undefined : at(to), calls: { models: 0, tools: 0, failed: 0 }, own: noUsage, subtree: noUsage, sessions: [], ...more };
}

export function call(path: string, from: number, latency: number, more: Partial<Call> = {}): Call {
  return { path, session_id: 'a', agent: 'a', kind: 'model', name: 'model', started_at: at(from), latency_ms: latency, outcome: 'ok', usage: noUsage, ...more };
}
