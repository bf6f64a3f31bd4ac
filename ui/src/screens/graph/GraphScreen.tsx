import { Page } from '@/design';

export default function GraphScreen() {
  return <Page title="Graph">Not built yet</Page>;
}
