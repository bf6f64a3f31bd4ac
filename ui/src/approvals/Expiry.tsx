import { Clock } from 'lucide-react';
import { cx } from '@/design';
import { absolute, duration } from '@/lib/format';
import { useNow } from '@/lib/useNow';
import styles from './Approval.module.css';

const URGENT = 5 * 60_000;

/** How long there is to decide; emphasised in the last five minutes. */
export function Expiry({ at }: { at: string }) {
  const end = new Date(at);
  const left = end.getTime() - useNow(1_000);
  return (
    <time dateTime={at} title={absolute(end)} className={cx(styles.expiry, 'tabular', left < URGENT && styles.urgent)}>
      <Clock size={13} aria-hidden />
      {left > 0 ? `Expires in ${duration(Math.ceil(left / 1000) * 1000)}` : 'Expired'}
    </time>
  );
}
