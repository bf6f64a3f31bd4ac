import { Notice } from '@/design';
import type { ThreadState } from '@/thread/state';
import styles from './Conversation.module.css';

/** The newest warning that a budget is nearly used up, until a later run passes without one. */
export function BudgetNote({ state }: { state: ThreadState }) {
  const newest = Object.values(state.runs).reduce<ThreadState['runs'][string] | undefined>((last, run) => (last && last.startedAt > run.startedAt ? last : run), undefined);
  if (!newest?.budget) return null;
  return <div role="status" className={styles.budget}><Notice tone="warning">{newest.budget}</Notice></div>;
}
