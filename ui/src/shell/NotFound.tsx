import { Compass } from 'lucide-react';
import { Link } from 'wouter';
import { EmptyState } from '@/design';

export function NotFound() {
  return (
    <EmptyState icon={Compass} title="This page does not exist" action={<Link href="/">Start a conversation</Link>}>
      The address may be mistyped, or what it named was deleted.
    </EmptyState>
  );
}
