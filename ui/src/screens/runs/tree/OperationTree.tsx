import { useMemo, useRef, useState, type KeyboardEvent } from 'react';
import type { Session } from '@/api/types';
import { useNow } from '@/lib/useNow';
import { isOver } from '@/run/status';
import { flatten, treeKey } from './flatten';
import styles from './OperationTree.module.css';
import { TreeItem } from './TreeItem';

interface OperationTreeProps { sessions: Session[]; selected: string | undefined; onSelect: (id: string) => void }

/** Who worked below whom. Arrow keys move, Enter chooses a session for the tabs. */
export function OperationTree({ sessions, selected, onSelect }: OperationTreeProps) {
  const [collapsed, setCollapsed] = useState<ReadonlySet<string>>(new Set());
  const [focused, setFocused] = useState<string>();
  const root = useRef<HTMLDivElement>(null);
  const rows = useMemo(() => flatten(sessions, collapsed), [sessions, collapsed]);
  const now = useNow(rows.some((row) => !isOver(row.session.status)) ? 1_000 : 0);
  const current = rows.some((row) => row.id === focused) ? focused : (rows.find((row) => row.id === selected) ?? rows[0])?.id;

  const toggle = (id: string) => {
    const next = new Set(collapsed);
    if (!next.delete(id)) next.add(id);
    setCollapsed(next);
  };
  const focus = (id: string) => {
    setFocused(id);
    root.current?.querySelector<HTMLElement>(`[data-id="${CSS.escape(id)}"]`)?.focus();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (!current || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === 'Enter' || event.key === ' ') onSelect(current);
    else {
      const move = treeKey(event.key, rows, current, collapsed);
      if (!move) return;
      if ('focus' in move) focus(move.focus);
      else toggle(move.toggle);
    }
    event.preventDefault();
  };

  if (rows.length === 0) return <p className={styles.empty}>No agent has started yet.</p>;
  return (
    <div ref={root} role="tree" aria-label="Agents of this run" tabIndex={-1} className={styles.tree} onKeyDown={onKeyDown}>
      {rows.map((row) => (
        <TreeItem key={row.id} node={row} now={isOver(row.session.status) ? 0 : now} isOpen={!collapsed.has(row.id)} isSelected={row.id === selected} isCurrent={row.id === current} onSelect={onSelect} onToggle={toggle} onFocus={setFocused} />
      ))}
    </div>
  );
}
