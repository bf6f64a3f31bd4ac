import { useMay } from '@/api/useMay';
import { LinkButton } from '@/design';

/** The way out of an empty screen, for those who may write. */
export function StartLink() {
  const may = useMay();
  return may('thread:write') ? <LinkButton href="/">Start a conversation</LinkButton> : null;
}
