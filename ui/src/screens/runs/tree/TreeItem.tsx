import { ChevronDown, ChevronRight } from 'lucide-react';
import { compact, cost, duration, tokens } from '@/lib/format';
import { RunStatus } from '@/run/RunStatus';
import { elapsed } from '../times';
import { Agent } from '../Agent';
import type { TreeNode } from './flatten';
import styles from './OperationTree.module.css';

interface TreeItemProps {
  node: TreeNode;
  /** Only for sessions that are not over. */
  now: number;
  isOpen: boolean;
  isSelected: boolean;
  isCurrent: boolean;
  onSelect: (id: string) => void;
  onToggle: (id: string) => void;
  onFocus: (id: string) => void;
}

export function TreeItem({ node, now, isOpen, isSelected, isCurrent, onSelect, onToggle, onFocus }: TreeItemProps) {
  const { session, id, depth, hasChildren } = node;
  const took = duration(elapsed(session, now) ?? 0);
  const Chevron = isOpen ? ChevronDown : ChevronRight;
  return (
    // The tree handles the keys: the focus is on one item at a time.
    // eslint-disable-next-line jsx-a11y/click-events-have-key-events
    <div
      role="treeitem"
      data-id={id}
      tabIndex={isCurrent ? 0 : -1}
      aria-level={depth + 1}
      aria-posinset={node.position}
      aria-setsize={node.siblings}
      aria-expanded={hasChildren ? isOpen : undefined}
      aria-selected={isSelected}
      className={styles.item}
      style={{ paddingInlineStart: 8 + Math.min(depth, 6) * 16 }}
      title={session.error ? `${session.error.code}: ${session.error.message}` : session.why}
      onFocus={() => onFocus(id)}
      onClick={() => onSelect(id)}
    >
      {hasChildren ? (
        <button type="button" tabIndex={-1} aria-label={isOpen ? 'Collapse' : 'Expand'} className={styles.chevron} onClick={(event) => { event.stopPropagation(); onToggle(id); }}><Chevron size={14} aria-hidden /></button>
      ) : <span className={styles.chevron} />}
      <div className={styles.text}>
        <div className={styles.first}>
          <Agent id={session.agent} />
          <span className={styles.time}>{took}</span>
          <RunStatus status={session.status} iconOnly />
        </div>
        <Spent node={node} />
      </div>
    </div>
  );
}

/** Own use first; with sub-agents also that of the whole subtree. */
function Spent({ node: { session, hasChildren } }: { node: TreeNode }) {
  const { own, subtree } = session;
  return (
    <div className={styles.spent}>
      <span title="This agent alone">{compact(tokens(own))} tok · {cost(own)}</span>
      {hasChildren && <span title="With everything below it" className={styles.total}>Σ {compact(tokens(subtree))} · {cost(subtree)}</span>}
    </div>
  );
}
