import { Page } from '@/design';

export default function RunScreen({ runId }: { runId: string }) {
  return <Page title={runId}>Not built yet</Page>;
}
