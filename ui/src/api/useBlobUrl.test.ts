import { expect, test } from 'vitest';
import { isArtifact, pictureUrl } from './useBlobUrl';

test('only the address of one artifact is one', () => {
  const uri = '/api/v1/artifacts/01a1e592-62e4-7159-a34f-fedb50f3d386';
  expect(isArtifact(uri)).toBe(true);
  for (const other of ['', '/api/v1/artifacts/', `${uri}/x`, `${uri}?x`, `${uri}\n`, `${uri}/../../threads`, '/api/v1/artifacts/../threads', `https://evil.example${uri}`]) {
    expect(isArtifact(other), other).toBe(false);
  }
});

test('only pictures without script get an address of this page', async () => {
  const url = (type: string) => pictureUrl(new Blob(['<svg>#ä</svg>'], { type }));
  expect(await url('image/png')).toMatch(/^blob:/);
  expect(await url('Image/PNG; x=1')).toMatch(/^blob:/);
  expect(await url('image/svg+xml')).toBe('data:image/svg+xml,%3Csvg%3E%23%C3%A4%3C%2Fsvg%3E');
  for (const type of ['text/html', 'image/svg+xml2', 'application/xhtml+xml', 'text/xml', '']) await expect(url(type), type).rejects.toThrow();
});
