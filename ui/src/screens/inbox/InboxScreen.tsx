import { useQuery } from '@tanstack/react-query';
import { pendingApprovals } from '@/api/approvals';
import { Page, Tabs } from '@/design';
import { useSearchState } from '@/lib/useSearchState';
import { Forbidden, isForbidden } from '@/shell/Forbidden';
import { Decided } from './Decided';
import { Pending } from './Pending';

/** Everything that waits for a person. */
export default function InboxScreen() {
  const [params, change] = useSearchState();
  // Those who look at the inbox wait for it.
  const { data, error } = useQuery({ ...pendingApprovals(), refetchInterval: 5_000 });
  const tabs = [
    { id: 'pending', label: 'Waiting', ...(data && { count: data.data.length }), content: () => <Pending /> },
    { id: 'decided', label: 'Decided', content: () => <Decided /> },
  ];
  return (
    <Page title="Inbox" lead="Tool calls that need an approval and questions of agents. Those that expire first are at the top.">
      {isForbidden(error) ? <Forbidden error={error} /> : <Tabs label="Requests" tabs={tabs} active={params.get('tab') ?? 'pending'} onChange={(tab) => change({ tab: tab === 'pending' ? undefined : tab })} />}
    </Page>
  );
}
