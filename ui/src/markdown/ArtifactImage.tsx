import { ImageOff } from 'lucide-react';
import { isArtifact, useBlobUrl } from '@/api/useBlobUrl';
import styles from './ArtifactImage.module.css';

/** A picture that is stored as an artifact. Its address needs the authorization header, which an `img` element cannot send. */
export function ArtifactImage({ uri, alt }: { uri: string; alt: string }) {
  const isOwn = isArtifact(uri);
  const { url, failed } = useBlobUrl(isOwn ? uri : '');
  if (/^https?:\/\//i.test(uri)) return <a href={uri} target="_blank" rel="noopener noreferrer">{alt || uri}</a>;
  if (failed || !isOwn) return <span className={styles.missing}><ImageOff size={16} aria-hidden /> {alt || 'Image'} could not be loaded</span>;
  return url ? <img className={styles.image} src={url} alt={alt} /> : <span className={styles.placeholder} role="img" aria-label={`${alt || 'Image'} is loading`} />;
}
