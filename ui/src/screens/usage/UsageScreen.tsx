import { Page } from '@/design';

export default function UsageScreen() {
  return <Page title="Usage">Not built yet</Page>;
}
