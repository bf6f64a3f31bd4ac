import { useQuery } from '@tanstack/react-query';
import { Page, Tabs } from '@/design';
import { useSearchState } from '@/lib/useSearchState';
import { Forbidden, isForbidden } from '@/shell/Forbidden';
import { Decided } from './Decided';
import { Pending } from './Pending';
import { inboxQueries } from './queries';

/** Everything that waits for a person. */
export default function InboxScreen() {
  const [params, change] = useSearchState();
  const pending = useQuery(inboxQueries.pending());
  const tabs = [
    { id: 'pending', label: 'Waiting', ...(pending.data && { count: pending.data.length }), content: () => <Pending /> },
    { id: 'decided', label: 'Decided', content: () => <Decided /> },
  ];
  return (
    <Page title="Inbox" lead="Tool calls that need a person’s approval, those that expire first at the top.">
      {isForbidden(pending.error) ? <Forbidden error={pending.error} /> : <Tabs label="Approvals" tabs={tabs} active={params.get('tab') ?? 'pending'} onChange={(tab) => change({ tab: tab === 'pending' ? undefined : tab })} />}
    </Page>
  );
}
