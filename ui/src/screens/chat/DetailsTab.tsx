import { Link } from 'wouter';
import type { ThreadContext } from '@/api/types';
import { CopyButton, Time } from '@/design';
import { compact, count, dollars, plural } from '@/lib/format';
import type { ThreadState } from '@/thread/state';
import { useChat } from './context';
import styles from './Inspector.module.css';
import { totalOf } from './total';

export function DetailsTab({ threadId, thread, state }: { threadId: string; thread: ThreadContext | undefined; state: ThreadState }) {
  const { mayTrace } = useChat();
  const total = totalOf(Object.values(state.runs));
  const first = thread?.created_at ?? state.items[0]?.at;
  return (
    <dl className={styles.facts}>
      <dt>Conversation id</dt>
      <dd className={styles.id}><code className="mono">{threadId}</code><CopyButton text={threadId} label="Copy the id" /></dd>
      {first !== undefined && <><dt>Started</dt><dd><Time at={first} /></dd></>}
      <dt>Messages shown</dt>
      <dd className="tabular">{count(state.items.filter(({ kind }) => kind === 'message').length)}</dd>
      <dt>Cost of the {plural(total.runs, 'run')} shown</dt>
      <dd className="tabular">{total.isKnown ? dollars(total.usd) : total.usd > 0 ? `≥ ${dollars(total.usd)}` : 'unknown'} · {compact(total.tokens)} tokens</dd>
      {mayTrace && <><dt>Runs</dt><dd><Link href={`/runs?thread=${threadId}`}>All runs of this conversation</Link></dd></>}
    </dl>
  );
}
