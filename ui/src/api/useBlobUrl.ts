import { useEffect, useState } from 'react';
import { request } from '@/api/client';
import { download } from '@/lib/download';

const ARTIFACT = /^\/api\/v1\/artifacts\/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
/** Pictures that cannot contain script. */
const PIXELS = /^image\/(png|jpeg|gif|webp|avif|bmp|x-icon|vnd\.microsoft\.icon)$/;

/** The address of one file and nothing else. Texts name addresses too, and a path can lead from there to an endless stream. */
export function isArtifact(uri: string): boolean {
  return ARTIFACT.test(uri);
}

/**
 * A local address for a picture. An `img` runs no script, but opened in a tab of its own a local address has the rights of this page: an SVG
 * gets an address without any rights, and what is no picture gets none.
 */
export async function pictureUrl(blob: Blob): Promise<string> {
  const type = blob.type.split(';')[0]?.trim().toLowerCase() ?? '';
  if (PIXELS.test(type)) return URL.createObjectURL(blob);
  if (type !== 'image/svg+xml') throw new TypeError(`${type} is not a picture`);
  return `data:image/svg+xml,${encodeURIComponent(await blob.text())}`;
}

/** A picture whose address needs the authorization header, as a local address. */
export function useBlobUrl(uri: string): { url?: string; failed: boolean } {
  const [state, setState] = useState<{ url?: string; failed: boolean }>({ failed: false });
  useEffect(() => {
    if (!uri) return;
    let url: string | undefined;
    const left = new AbortController();
    const free = () => url?.startsWith('blob:') && URL.revokeObjectURL(url);
    request(uri, { signal: left.signal }).then((response) => response.blob()).then(pictureUrl).then(
      (made) => {
        url = made;
        if (left.signal.aborted) free();
        else setState({ url, failed: false });
      },
      () => left.signal.aborted || setState({ failed: true }),
    );
    return () => {
      left.abort();
      free();
    };
  }, [uri]);
  return state;
}

/** Saves a file that needs the authorization header. */
export async function downloadFrom(uri: string, name: string): Promise<void> {
  const blob = await (await request(uri)).blob();
  download(name, blob.type, [blob]);
}
