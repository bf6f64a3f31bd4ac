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
  if (part.type === 'image') return 'data' in part ? <img className={styles.image} src={`data:${part.media_type};base64,${part.data}`} alt="Attachment" /> : <ArtifactImage uri={part.uri} alt="Attachment" />;
  if (part.type === 'file') return <FileCard uri={part.uri} name={part.name} detail={part.media_type} />;
  return null;
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
