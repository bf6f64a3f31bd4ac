import { useQuery } from '@tanstack/react-query';
import { KeyRound, Plus } from 'lucide-react';
import { useMemo, useState } from 'react';
import { Button, EmptyState, Page, Skeleton } from '@/design';
import { LoadError } from '@/shell/LoadError';
import { CreateKey } from './CreateKey';
import { keysQuery, sorted } from './data';
import { KeysTable } from './KeysTable';

export default function KeysScreen() {
  const keys = useQuery(keysQuery());
  const [isCreating, setIsCreating] = useState(false);
  const rows = useMemo(() => sorted(keys.data?.data ?? []), [keys.data]);
  const create = <Button kind="primary" icon={Plus} onClick={() => setIsCreating(true)}>Create key</Button>;
  return (
    <Page title="Keys" lead="API keys of this tenant: who they act for, what they allow, and when they were used." actions={keys.isError ? undefined : create}>
      {keys.isError ? <LoadError what="the keys" error={keys.error} onRetry={() => void keys.refetch()} />
        : keys.isPending ? <Skeleton rows={5} height={40} />
        : rows.length === 0 ? <EmptyState icon={KeyRound} title="No keys yet">A program signs in with an API key. The key is shown once, when it is created.</EmptyState>
        : <KeysTable keys={rows} />}
      {isCreating && <CreateKey onClose={() => setIsCreating(false)} />}
    </Page>
  );
}
