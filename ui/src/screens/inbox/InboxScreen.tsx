import { useQuery } from '@tanstack/react-query';
import { useSearchParams } from 'wouter';
import { Page, Tabs } from '@/design';
import { Forbidden, isForbidden } from '@/shell/Forbidden';
import { Decided } from './Decided';
import { Pending } from './Pending';
import { inboxQueries } from './queries';

/** Everything that waits for a person. */
export default function InboxScreen() {
  const [search, setSearch] = useSearchParams();
  const pending = useQuery(inboxQueries.pending());
  const show = (tab: string) => setSearch((old) => {
    const next = new URLSearchParams(old);
    if (tab === 'pending') next.delete('tab');
    else next.set('tab', tab);
    return next;
  }, { replace: true });
  const tabs = [
    { id: 'pending', label: 'Waiting', ...(pending.data && { count: pending.data.length }), content: () => <Pending /> },
    { id: 'decided', label: 'Decided', content: () => <Decided /> },
  ];
  return (
    <Page title="Inbox" lead="Tool calls that need a person’s approval, those that expire first at the top.">
      {isForbidden(pending.error) ? <Forbidden error={pending.error} /> : <Tabs label="Approvals" tabs={tabs} active={search.get('tab') ?? 'pending'} onChange={show} />}
    </Page>
  );
}
