import { Page } from '@/design';

export default function AuditScreen() {
  return <Page title="Audit">Not built yet</Page>;
}
