import type { Session } from '@/api/types';

/** A session with its place in the tree. */
export interface TreeNode {
  session: Session;
  id: string;
  depth: number;
  parent?: string | undefined;
  /** Its place among its siblings, from 1, and how many there are. */
  position: number;
  siblings: number;
  hasChildren: boolean;
}

/** The tree as rows, parents before children. Children of collapsed sessions are left out. */
export function flatten(sessions: Session[], collapsed: ReadonlySet<string> = new Set()): TreeNode[] {
  const rows: TreeNode[] = [];
  const visit = (level: Session[], depth: number, parent?: string) => {
    level.forEach((session, at) => {
      const id = session.session_id;
      const hasChildren = session.sessions.length > 0;
      rows.push({ session, id, depth, parent, position: at + 1, siblings: level.length, hasChildren });
      if (hasChildren && !collapsed.has(id)) visit(session.sessions, depth + 1, id);
    });
  };
  visit(sessions, 0);
  return rows;
}

export type TreeMove = { focus: string } | { toggle: string } | undefined;

/** What a key does in a tree, as the ARIA practices describe it. */
export function treeKey(key: string, rows: TreeNode[], focused: string, collapsed: ReadonlySet<string>): TreeMove {
  const at = rows.findIndex((row) => row.id === focused);
  const row = rows[at];
  if (!row) return undefined;
  const focus = (next: TreeNode | undefined): TreeMove => (next ? { focus: next.id } : undefined);
  const isOpen = row.hasChildren && !collapsed.has(row.id);
  switch (key) {
    case 'ArrowDown': return focus(rows[at + 1]);
    case 'ArrowUp': return focus(rows[at - 1]);
    case 'Home': return focus(rows[0]);
    case 'End': return focus(rows.at(-1));
    case 'ArrowRight': return !row.hasChildren ? undefined : isOpen ? focus(rows[at + 1]) : { toggle: row.id };
    case 'ArrowLeft': return isOpen ? { toggle: row.id } : row.parent ? { focus: row.parent } : undefined;
    default: return undefined;
  }
}
