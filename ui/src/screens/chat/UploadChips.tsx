import { RotateCw, X } from 'lucide-react';
import { IconButton } from '@/design';
import { bytes } from '@/lib/format';
import styles from './Composer.module.css';
import type { Upload } from './useUploads';

export function UploadChips({ items, onRemove, onRetry }: { items: Upload[]; onRemove: (id: string) => void; onRetry: (id: string) => void }) {
  return items.map(({ id, file, status, progress, problem }) => (
    <span key={id} className={styles.upload} data-status={status}>
      <span className={styles.uploadName} title={file.name} dir="auto">{file.name}</span>
      <span className={styles.uploadFact} data-failed={problem ? true : undefined} role={problem ? 'alert' : undefined}>{problem ?? (status === 'uploading' ? `${Math.round(progress * 100)} %` : bytes(file.size))}</span>
      {status === 'failed' && <IconButton icon={RotateCw} label={`Upload ${file.name} again`} size="small" onClick={() => onRetry(id)} />}
      <IconButton icon={X} label={`Remove ${file.name}`} size="small" onClick={() => onRemove(id)} />
    </span>
  ));
}
