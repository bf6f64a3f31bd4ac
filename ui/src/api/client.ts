import createClient, { type Middleware } from 'openapi-fetch';
import { Problem } from './problem';
import type { components, paths } from './schema';
import { authorization, reject } from './session';

export type Schemas = components['schemas'];

const session: Middleware = {
  onRequest({ request }) {
    for (const [name, value] of Object.entries(authorization())) request.headers.set(name, value);
    return request;
  },
  async onResponse({ response }) {
    if (response.ok) return response;
    if (response.status === 401) reject();
    throw await Problem.of(response);
  },
};

/** Typed by the OpenAPI document. Every answer that is not 2xx is thrown as a {@link Problem}. */
export const api = createClient<paths>({ baseUrl: '', fetch: (request) => globalThis.fetch(request) });
api.use(session);

/** The body of an answer that has one. */
export async function data<T>(call: Promise<{ data?: T }>): Promise<T> {
  const { data } = await call;
  if (data === undefined) throw new Problem(500, 'unknown', 'the server answered without a body');
  return data;
}

/** For what the typed client has no form for: uploads, downloads, preferences. */
export async function request(path: string, init: RequestInit = {}): Promise<Response> {
  const response = await fetch(path, { ...init, headers: { ...authorization(), ...init.headers } });
  if (response.ok) return response;
  if (response.status === 401) reject();
  throw await Problem.of(response);
}
