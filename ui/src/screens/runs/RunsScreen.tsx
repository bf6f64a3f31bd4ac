import { Page } from '@/design';

export default function RunsScreen() {
  return <Page title="Runs">Not built yet</Page>;
}
