import { Page } from '@/design';

export default function PatternsScreen() {
  return <Page title="Patterns">Not built yet</Page>;
}
