import { useQuery } from '@tanstack/react-query';
import { sentence } from '@/api/problem';
import { ErrorNote, Skeleton } from '@/design';
import { FileCard } from './Attachments';
import styles from './Inspector.module.css';
import { chatQueries } from './queries';

/** Files of the conversation, those of agents too. */
export function FilesTab({ threadId, isEmpty }: { threadId: string; isEmpty: boolean }) {
  const { data, error, isPending } = useQuery({ ...chatQueries.artifacts(threadId), enabled: !isEmpty });
  if (!isEmpty && isPending) return <Skeleton rows={3} height={40} />;
  if (error) return <ErrorNote>{sentence(error)}</ErrorNote>;
  const files = data?.data ?? [];
  if (files.length === 0) return <p className="faint">Files that you attach or that agents create appear here.</p>;
  return (
    <ul role="list" className={styles.files}>
      {files.map((file) => <li key={file.artifact_id}><FileCard uri={`/api/v1/artifacts/${file.artifact_id}`} name={file.name} size={file.size} detail={file.media_type} /></li>)}
    </ul>
  );
}
