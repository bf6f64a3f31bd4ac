import type { JsonSchema } from './fields';

export type ApprovalStatus = 'pending' | 'approved' | 'denied' | 'answered' | 'expired' | 'cancelled' | 'invalidated';
export type Risk = 'low' | 'medium' | 'high';

/** A call or a question that waits, or waited, for a person; the same in lists and in the event `baton.approval`. */
export interface Approval {
  approval_id: string;
  kind: 'tool' | 'question';
  path: string;
  agent: string;
  tool: string;
  arguments?: unknown;
  /** A decision holds for exactly the call with this digest. */
  digest: string;
  risk: Risk;
  preview: { heading: string; fields?: { label: string; value: string }[] };
  /** JSON Schema: of the arguments of a tool, or of the answer to a question. */
  schema?: unknown;
  choices?: string[] | undefined;
  /** For a question of a workflow: the handoff of the agent that asks. The answer is the next message of the conversation. */
  handoff_id?: string | undefined;
  status: ApprovalStatus;
  created_at: string;
  expires_at: string;
  decided_at?: string | undefined;
  decided_by?: string | undefined;
  reason?: string | undefined;
  /** With what the call is made, if the person changed the arguments. */
  edited?: unknown;
  answer?: unknown;
  /** Further calls of the tool in this conversation are decided alike. */
  remember?: boolean | undefined;
}

/** One of a list, which may be of any conversation. */
export type ListedApproval = Approval & { thread_id: string; run_id: string };

export interface Decision {
  decision: 'approve' | 'deny';
  reason?: string;
  arguments?: unknown;
  remember?: boolean;
  answer?: unknown;
}

/** Whether a decision is still awaited. */
export function isOpen({ status }: Pick<Approval, 'status'>): boolean {
  return status === 'pending';
}

/** Whether a workflow asks. Its question and the answer are messages of the conversation, too. */
export function isWorkflowQuestion({ handoff_id }: Pick<Approval, 'handoff_id'>): boolean {
  return handoff_id !== undefined && handoff_id !== null;
}

/** What a person has to be told of who looks at the conversation `threadId`: there they see what its workflow asks. */
export function unseen(approvals: ListedApproval[], threadId: string | undefined): ListedApproval[] {
  return approvals.filter((approval) => !(isWorkflowQuestion(approval) && approval.thread_id === threadId));
}

/** Those that expire first come first. */
export function byExpiry<T extends Approval>(approvals: T[]): T[] {
  return approvals.toSorted((left, right) => Date.parse(left.expires_at) - Date.parse(right.expires_at));
}

/** When it was decided, or when its time was over. */
export function endOf(approval: Approval): number {
  return Date.parse(approval.decided_at ?? approval.expires_at);
}

/** How an agent comes to work for another one, as paths spell it. */
const INVOCATIONS = new Set(['call', 'delegate', 'advisor', 'member', 'route', 'transfer', 'handoff', 'return']);

/** Who asks, and through whom: the agents of a path such as `assistant/turn:1/tool:1/call:worker/turn:1/tool:1`. */
export function agentsOf(path: string): string[] {
  const [root = '', ...steps] = path.split('/');
  const invoked = steps.flatMap((step) => {
    const at = step.indexOf(':');
    return at > 0 && INVOCATIONS.has(step.slice(0, at)) ? [step.slice(at + 1)] : [];
  });
  return [root, ...invoked];
}

/** The schema of an answer, if it has fields; a text is typed otherwise. */
export function formOf({ schema }: Approval): JsonSchema | undefined {
  const form = schema as JsonSchema | undefined;
  return Object.keys(form?.properties ?? {}).length > 0 ? form : undefined;
}

/** The newer of two forms of the same record: a decision is final. */
export function newer<T extends Approval>(old: T, next: T): T {
  return isOpen(old) || !isOpen(next) ? next : old;
}

/**
 * What a preview says beyond the tool and its arguments: a heading of its own, and fields that are no arguments. The arguments
 * are shown whole beside it: no text of a model decides what of a call is seen.
 */
export function previewOf({ arguments: args, preview, tool }: Approval): { heading: string; fields: { label: string; value: string }[] } {
  const heading = preview.heading === tool || preview.heading === `Use the tool ${tool}` ? '' : preview.heading;
  const isArgument = (label: string) => typeof args === 'object' && args !== null && Object.hasOwn(args, label);
  return { heading, fields: (preview.fields ?? []).filter(({ label }) => label !== 'tool' && !isArgument(label)) };
}
