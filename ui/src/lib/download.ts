/** Gives the browser a file that was made on this page. */
export function download(name: string, type: string, parts: BlobPart[]): void {
  const url = URL.createObjectURL(new Blob(parts, { type }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  // The browser reads the address after the click; freeing it at once would cut the download.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/** `2026-11-16`, for file names. */
export function today(): string {
  return new Date().toISOString().slice(0, 10);
}
