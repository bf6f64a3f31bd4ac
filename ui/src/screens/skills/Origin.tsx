import { CircleCheck, TriangleAlert } from 'lucide-react';
import type { Schemas } from '@/api/client';
import { Badge } from '@/design';
import { plural } from '@/lib/format';
import styles from './skills.module.css';

export function Origin({ origin }: { origin: Schemas['OriginView'] }) {
  return origin === 'created' ? <Badge tone="accent" title="Created in a conversation, for this tenant">Created</Badge> : <Badge title="Part of the project, for all tenants">Shared</Badge>;
}

/** Whether it follows the Agent Skills rules, with the reasons in the tooltip. */
export function Validity({ problems }: { problems: string[] }) {
  if (problems.length === 0) return <span className={styles.valid}><CircleCheck size={14} aria-hidden />Valid</span>;
  return <span className={styles.invalid} title={problems.join('\n')}><TriangleAlert size={14} aria-hidden />{plural(problems.length, 'problem')}</span>;
}
