import { Page } from '@/design';

export default function InboxScreen() {
  return <Page title="Inbox">Not built yet</Page>;
}
