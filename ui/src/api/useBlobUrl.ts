import { useEffect, useState } from 'react';
import { request } from '@/api/client';
import { download } from '@/lib/download';

/** The content of an address that needs the authorization header, as a local address. */
export function useBlobUrl(uri: string): { url?: string; failed: boolean } {
  const [state, setState] = useState<{ url?: string; failed: boolean }>({ failed: false });
  useEffect(() => {
    if (!uri) return;
    let url: string | undefined;
    const left = new AbortController();
    request(uri, { signal: left.signal }).then((response) => response.blob()).then(
      (blob) => {
        if (left.signal.aborted) return;
        url = URL.createObjectURL(blob);
        setState({ url, failed: false });
      },
      () => left.signal.aborted || setState({ failed: true }),
    );
    return () => {
      left.abort();
      if (url) URL.revokeObjectURL(url);
    };
  }, [uri]);
  return state;
}

/** Saves a file that needs the authorization header. */
export async function downloadFrom(uri: string, name: string): Promise<void> {
  const blob = await (await request(uri)).blob();
  download(name, blob.type, [blob]);
}
