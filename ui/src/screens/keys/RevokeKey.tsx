import { useMutation, useQueryClient } from '@tanstack/react-query';
import { sentence } from '@/api/problem';
import { Button, Dialog, ErrorNote } from '@/design';
import { revokeKey, type Key } from './data';

/** Asks once: a revoked key never works again. */
export function RevokeKey({ of: key, onClose }: { of: Key; onClose: () => void }) {
  const client = useQueryClient();
  const revoke = useMutation({
    mutationFn: () => revokeKey(key.key_id),
    onSuccess: onClose,
    onSettled: () => client.invalidateQueries({ queryKey: ['keys'] }),
  });
  const actions = (
    <>
      <Button onClick={onClose}>Cancel</Button>
      <Button kind="danger" busy={revoke.isPending} onClick={() => revoke.mutate()}>Revoke</Button>
    </>
  );
  return (
    <Dialog title="Revoke this key?" onClose={onClose} actions={actions}>
      <p>Programs that use “<bdi>{key.name || key.prefix}</bdi>” of <bdi>{key.user_id}</bdi> are refused within seconds. This cannot be undone.</p>
      {revoke.error && <ErrorNote>{sentence(revoke.error)}</ErrorNote>}
    </Dialog>
  );
}
