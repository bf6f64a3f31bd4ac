import type { ReactNode } from 'react';
import type { Me } from '@/api/types';

export function Shell({ children }: { me: Me | undefined; children: ReactNode }) {
  return <main>{children}</main>;
}
