import { Compass } from 'lucide-react';
import { EmptyState, LinkButton, Page } from '@/design';

export function NotFound() {
  return (
    <Page title="Page not found">
      <EmptyState icon={Compass} title="This page does not exist" action={<LinkButton href="/">Go to the start page</LinkButton>}>
        Check the address. What it points to may have been deleted.
      </EmptyState>
    </Page>
  );
}
