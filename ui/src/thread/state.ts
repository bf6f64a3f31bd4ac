import type { ActiveAgent, HandoffPhase, Progress, SourceRef } from '@/api/events';
import type { Approval } from '@/approvals/record';
import type { Schemas } from '@/api/client';
import type { RunStatus } from '@/api/types';

/** A conversation as the page shows it: what the reducer makes of the history and of the events after it. */
export interface ThreadState {
  /** Messages, dividers and requests in the order in which they are read. */
  items: Item[];
  runs: Record<string, RunState>;
  /** The run that is being worked on. */
  activeRun?: string | undefined;
  /** Who answers next. */
  activeAgent?: ActiveAgent | undefined;
  handoff?: HandoffState | undefined;
  progress?: Progress | undefined;
  /** Older messages than the first item exist. */
  hasOlder: boolean;
}

export type Part = Schemas['PartView'];
export type Item = MessageItem | DividerItem | RequestItem;

export interface MessageItem {
  kind: 'message';
  id: string;
  /** Stays the same when the server gives the message its id. */
  key?: string | undefined;
  role: 'user' | 'assistant';
  runId?: string | undefined;
  agent?: string | undefined;
  /** What people call that agent. */
  name?: string | undefined;
  text: string;
  /** Files and pictures beside the text. */
  attachments: Part[];
  at: number;
  /** `sending` and `failed` are messages that the server has not confirmed. */
  status: 'sending' | 'failed' | 'streaming' | 'done';
  /** Its number in the thread, once it is stored. */
  number?: number | undefined;
  rating?: number | undefined;
  /** Why it could not be sent. */
  problem?: string | undefined;
}

/** The line that a handoff leaves in the conversation when it begins and when it ends. */
export interface DividerItem {
  kind: 'divider';
  id: string;
  runId?: string | undefined;
  handoffId: string;
  edge: 'start' | 'end';
  text: string;
  /** How the agent announces itself: `[Skill Creation Mode]`. */
  mode?: string | undefined;
  /** The agent that has the thread from here on. */
  agent: string;
  failed?: boolean;
  at: number;
}

/** A call that needs a person's approval, or a question, where the run stopped for it. */
export interface RequestItem {
  kind: 'request';
  id: string;
  runId?: string | undefined;
  approval: Approval;
  at: number;
}

export interface HandoffState {
  id: string;
  phase: HandoffPhase;
  from: string;
  to: string;
  name: string;
}

export interface RunState {
  id: string;
  agent: string;
  status: RunStatus;
  startedAt: number;
  finishedAt?: number | undefined;
  /** "Researching…" */
  activity?: string | undefined;
  subAgents: SubAgent[];
  /** Who contributed to the answer. Of old runs only these are known until the run is loaded. */
  sources: SourceRef[];
  usage?: Usage | undefined;
  error?: { code: string; message: string } | undefined;
  /** A budget that is nearly used up. */
  budget?: string | undefined;
  /** It was cancelled before it began. */
  isRemoved?: boolean;
}

export interface Usage { input_tokens: number; output_tokens: number; cost_known: boolean; cost_usd: string }

/** An agent that works behind the scenes. Its text is known only with `trace:read`. */
export interface SubAgent {
  id: string;
  parent?: string | undefined;
  agent: string;
  name: string;
  task?: string | undefined;
  status: 'running' | 'waiting' | 'done' | 'failed' | 'cancelled';
  startedAt: number;
  finishedAt?: number | undefined;
  text: string;
  /** The messages that `text` consists of. One that is repeated after a reconnect replaces the old one. */
  texts?: { id: string; text: string }[] | undefined;
  tools: ToolCall[];
  error?: string | undefined;
}

export interface ToolCall { id: string; name: string; arguments: string; result?: string | undefined }

export const emptyThread: ThreadState = { items: [], runs: {}, hasOlder: false };
