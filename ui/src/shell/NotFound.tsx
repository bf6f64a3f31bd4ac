import { Compass } from 'lucide-react';
import { Link } from 'wouter';
import { EmptyState, Page } from '@/design';

export function NotFound() {
  return (
    <Page title="Page not found">
      <EmptyState icon={Compass} title="This page does not exist" action={<Link href="/">Start a conversation</Link>}>
        The address may be mistyped, or what it named was deleted.
      </EmptyState>
    </Page>
  );
}
