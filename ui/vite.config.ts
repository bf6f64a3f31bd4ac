import react from '@vitejs/plugin-react';
import { fileURLToPath } from 'node:url';
import type { ProxyOptions } from 'vite';
import { defineConfig } from 'vitest/config';

/** In development the page comes from Vite and everything else from a Baton server. */
const server = process.env.BATON_URL ?? 'http://127.0.0.1:8420';
const proxied = ['/api', '/v1', '/version', '/readyz', '/livez', '/openapi.json', '/docs'];

/** The server refuses requests of pages of another origin. In development the page is one, but other sites still have to be refused. */
const sameOrigin: ProxyOptions['configure'] = (proxy) => proxy.on('proxyReq', (request, { headers }) => {
  if (headers.origin === `http://${headers.host}`) request.removeHeader('origin');
});

export default defineConfig({
  plugins: [react()],
  resolve: { alias: { '@': fileURLToPath(new URL('./src', import.meta.url)) } },
  build: {
    target: 'es2022',
    // The policy of the page forbids inline data except images.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    manifest: '.vite/manifest.json',
    reportCompressedSize: false,
  },
  server: { proxy: Object.fromEntries(proxied.map((path) => [path, { target: server, ws: true, configure: sameOrigin }])) },
  test: { environment: 'happy-dom', include: ['src/**/*.test.{ts,tsx}'], restoreMocks: true },
});
