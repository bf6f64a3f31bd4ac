import type { Call, Step } from '@/api/types';
import type { TreeNode } from '../tree/flatten';
import { replyOf, textOf, toolOf, type ToolRequest } from './decode';

export interface ConversationEntry { role: 'task' | 'agent' | 'tool'; path: string; text: string; name?: string; calls?: ToolRequest[]; failed?: boolean }

/** Paths in the order of what happened: `turn:2` before `turn:10`, a turn before its tools. */
export function comparePaths(one: string, other: string): number {
  return one.localeCompare(other, 'en', { numeric: true });
}

/** What the model had read in this session when the turn began. `task` is used if the session's step has none. */
export function conversationBefore(step: Step, steps: Step[], calls: Call[], task = ''): ConversationEntry[] {
  const session = steps.filter((other) => other.session_id === step.session_id).sort((one, other) => comparePaths(one.path, other.path));
  const opening = session.find((other) => other.kind === 'session');
  const text = textOf(opening?.input) || task;
  const said: ConversationEntry[] = text ? [{ role: 'task', path: opening?.path ?? step.path, text }] : [];
  for (const other of session) {
    if (comparePaths(other.path, step.path) >= 0) break;
    const { path } = other;
    if (other.kind === 'turn') {
      const { text, calls: requests } = replyOf(other.output);
      said.push({ role: 'agent', path, text, calls: requests });
    } else if (other.kind === 'tool') {
      const { name, result, failed } = toolOf(other, calls, steps);
      said.push({ role: 'tool', path, name, text: result, failed });
    }
  }
  return said;
}

export interface StepGroup { node: TreeNode; steps: Step[] }

/** Steps by session, sessions in the order of the tree. */
export function groupSteps(steps: Step[], nodes: TreeNode[]): StepGroup[] {
  const groups = nodes.map((node): StepGroup => ({ node, steps: steps.filter((step) => step.session_id === node.id).sort((one, other) => comparePaths(one.path, other.path)) }));
  return groups.filter((group) => group.steps.length > 0);
}
