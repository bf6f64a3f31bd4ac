import type { Me } from '@/api/types';
import { Dialog } from '@/design';

export function CommandPalette({ onClose }: { me: Me | undefined; onClose: () => void }) {
  return <Dialog kind="palette" title="Search and commands" hideTitle onClose={onClose}>…</Dialog>;
}
