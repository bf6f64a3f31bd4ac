import type { Schemas } from './client';

/** The AG-UI events that Baton sends, as far as the page reads them. */
export interface Origin { thread_id: string; run_id: string; agent: string; path: string[]; seq: number }
export interface ActiveAgent { id: string; display_name: string; color?: string; exitable: boolean; /** `[Skill Creation Mode]`, while it holds the thread. */ mode?: string }
export interface Progress { state: string; label: string; step: number; total: number; /** Values that the workflow has, of those that it collects. */ answered: number; questions: number; mode?: string; /** "Gathering requirements - 3/6 answers". Events of earlier versions have none. */ text?: string }
export type HandoffPhase = 'connecting' | 'active' | 'returning' | 'completed' | 'cancelled' | 'error';
export interface HandoffValue { handoff_id: string; phase: HandoffPhase; from: string; to: string; display_name: string; reason: string; message: string; estimated_duration_seconds?: number }
export interface WireUsage { input_tokens: number; output_tokens: number; cost: { price: string; usd?: number } }
export interface SourceRef { agent: string; session_id: string }
export interface UsageValue { usage?: WireUsage; by_agent?: { agent: string; usage: WireUsage }[]; limit?: string; answered_by?: string; sources?: SourceRef[] }
export interface BudgetValue { scope: string; period?: string; unit: string; percent: number; message: string }

export interface FilesContent { message_id: string; parts: Schemas['PartView'][] }

export interface SnapshotMessage {
  id: string;
  role: 'user' | 'assistant' | 'system' | 'tool' | 'activity' | 'reasoning' | 'developer';
  name?: string;
  content?: unknown;
  toolCalls?: { id: string; function: { name: string; arguments: string } }[];
  toolCallId?: string;
  activityType?: string;
  subagentRunId?: string;
  metadata?: { baton?: { run_id?: string; agent?: string } };
}

interface Base { timestamp?: number; metadata?: { baton?: Origin }; subagentRunId?: string }

export type AguiEvent = Base &
  (
    | { type: 'RUN_STARTED'; threadId: string; runId: string }
    | { type: 'RUN_FINISHED'; threadId: string; runId: string; outcome?: { type: 'success' | 'interrupt' | 'cancelled' } }
    | { type: 'RUN_ERROR'; message: string; code?: string }
    | { type: 'TEXT_MESSAGE_START'; messageId: string; role?: string; name?: string }
    | { type: 'TEXT_MESSAGE_CONTENT'; messageId: string; delta: string }
    | { type: 'TEXT_MESSAGE_END'; messageId: string }
    | { type: 'TOOL_CALL_START'; toolCallId: string; toolCallName: string }
    | { type: 'TOOL_CALL_ARGS'; toolCallId: string; delta: string }
    | { type: 'TOOL_CALL_END'; toolCallId: string }
    | { type: 'TOOL_CALL_RESULT'; toolCallId: string; messageId: string; content: unknown }
    | { type: 'STATE_SNAPSHOT'; snapshot: { activeAgent?: ActiveAgent } }
    | { type: 'STATE_DELTA'; delta: { op: string; path: string; value?: unknown }[] }
    | { type: 'MESSAGES_SNAPSHOT'; messages: SnapshotMessage[] }
    | { type: 'ACTIVITY_SNAPSHOT'; messageId: string; activityType: string; content: Record<string, unknown> }
    | { type: 'REASONING_MESSAGE_CONTENT'; messageId: string; delta: string }
    | { type: 'SUBAGENT_STARTED'; subagentRunId: string; name: string; description?: string; parentSubagentRunId?: string }
    | { type: 'SUBAGENT_FINISHED'; subagentRunId: string; outcome?: { type: 'success' | 'suspended' } }
    | { type: 'SUBAGENT_ERROR'; subagentRunId: string; message: string; code?: string }
    | { type: 'CUSTOM'; name: string; value: unknown }
    | { type: 'REASONING_START' | 'REASONING_END' | 'REASONING_MESSAGE_START' | 'REASONING_MESSAGE_END' | 'STEP_STARTED' | 'STEP_FINISHED' | 'RAW' }
  );
