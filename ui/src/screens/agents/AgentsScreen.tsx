import { Page } from '@/design';

export default function AgentsScreen() {
  return <Page title="Agents">Not built yet</Page>;
}
