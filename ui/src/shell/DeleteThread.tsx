import { useLocation } from 'wouter';
import { sentence } from '@/api/problem';
import { Button, Dialog, ErrorNote } from '@/design';
import { useDeleteThread } from './threads';

/** Asks once. The open conversation gives way to a new one. */
export function DeleteThread({ threadId, title, isOpen, onClose }: { threadId: string; title: string; isOpen: boolean; onClose: () => void }) {
  const [, navigate] = useLocation();
  const remove = useDeleteThread(threadId, () => {
    onClose();
    if (isOpen) navigate('/');
  });
  const actions = (
    <>
      <Button onClick={onClose}>Cancel</Button>
      <Button kind="danger" busy={remove.isPending} onClick={() => remove.mutate()}>Delete</Button>
    </>
  );
  return (
    <Dialog title="Delete this conversation?" onClose={onClose} actions={actions}>
      <p>“<bdi>{title}</bdi>” is deleted with its messages, runs and files. This cannot be undone.</p>
      {remove.error && <ErrorNote>{sentence(remove.error)}</ErrorNote>}
    </Dialog>
  );
}
