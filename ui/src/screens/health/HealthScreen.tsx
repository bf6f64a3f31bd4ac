import { Page } from '@/design';

export default function HealthScreen() {
  return <Page title="Health">Not built yet</Page>;
}
