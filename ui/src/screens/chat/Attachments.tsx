import { Download, FileText } from 'lucide-react';
import { useState } from 'react';
import { sentence } from '@/api/problem';
import { downloadFrom, isArtifact } from '@/api/useBlobUrl';
import { IconButton } from '@/design';
import { bytes } from '@/lib/format';
import { ArtifactImage } from '@/markdown/ArtifactImage';
import type { Part } from '@/thread/state';
import styles from './Attachments.module.css';

/** Files and pictures of a message. */
export function Attachments({ parts }: { parts: Part[] }) {
  if (parts.length === 0) return null;
  return (
    <ul role="list" className={styles.list}>
      {parts.map((part, at) => <li key={at}><Attachment part={part} /></li>)}
    </ul>
  );
}

function Attachment({ part }: { part: Part }) {
  if (part.type === 'image') return <Picture part={part} />;
  if (part.type === 'file') return <FileCard uri={part.uri} name={part.name} detail={part.media_type} />;
  return null;
}

/** A picture with its name. One that is stored can be saved. */
function Picture({ part }: { part: Extract<Part, { type: 'image' }> }) {
  const alt = part.name ?? 'Attachment';
  if ('data' in part) return <img className={styles.image} src={`data:${part.media_type};base64,${part.data}`} alt={alt} />;
  return (
    <figure className={styles.figure}>
      <ArtifactImage uri={part.uri} alt={alt} />
      {part.name && (
        <figcaption className={styles.caption}>
          <span className="truncate" title={part.name} dir="auto">{part.name}</span>
          <SaveButton uri={part.uri} name={part.name} />
        </figcaption>
      )}
    </figure>
  );
}

function SaveButton({ uri, name }: { uri: string; name: string }) {
  const [problem, setProblem] = useState<string>();
  const save = () => downloadFrom(uri, name).then(() => setProblem(undefined), (error: unknown) => setProblem(sentence(error)));
  if (!isArtifact(uri)) return null;
  return (
    <>
      {problem && <span className={styles.problem} role="alert">{problem}</span>}
      <IconButton icon={Download} label={`Download ${name}`} size="small" onClick={() => void save()} />
    </>
  );
}

export function FileCard({ uri, name, detail, size }: { uri: string; name: string; detail?: string | undefined; size?: number | undefined }) {
  const [problem, setProblem] = useState<string>();
  const save = () => downloadFrom(uri, name).then(() => setProblem(undefined), (error: unknown) => setProblem(sentence(error)));
  const facts = [size === undefined ? undefined : bytes(size), detail].filter(Boolean).join(' · ');
  return (
    <div className={styles.card}>
      <FileText size={18} aria-hidden className={styles.icon} />
      <div className={styles.text}>
        <div className="truncate" title={name} dir="auto">{name}</div>
        {problem ? <div className={styles.problem} role="alert">{problem}</div> : facts && <div className={styles.facts}>{facts}</div>}
      </div>
      {isArtifact(uri) && <IconButton icon={Download} label={`Download ${name}`} size="small" onClick={() => void save()} />}
    </div>
  );
}
