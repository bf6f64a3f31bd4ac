import type { AgentDetail } from '@/api/types';
import { capitalize, count } from '@/lib/format';

export interface WorkflowState {
  name: string;
  collect?: { key: string; ask?: string; choices?: string[]; required?: boolean }[];
  run?: string;
  confirm?: string;
  on_failure?: string;
  next?: string[];
}

/** The keys of an agent file that the page shows in words. Older servers may lack some. */
/** One check of a guardrail. Only one of the first five is there. */
export interface Guard { max_length?: number; deny?: string[]; schema?: unknown; pii?: string[]; judge?: string; message?: string }

export interface Definition {
  tools?: { allow?: string[]; deny?: string[]; read_only?: boolean };
  mcp_servers?: Record<string, unknown> | string[];
  skills?: string[] | 'all';
  approvals?: { ask?: string[]; deny?: string[]; auto?: string[] };
  delegation?: Record<string, unknown>;
  advisors?: { agents?: unknown[]; min_success?: number; deadline?: string; on_quorum_fail?: string };
  team?: Record<string, unknown>;
  router?: Record<string, unknown>;
  accepts_handoff?: { triggers?: string[]; trigger_mode?: string; permission?: string; exclusive?: boolean; max_session?: string; return?: string; resume?: boolean; exit_words?: string[] };
  workflow?: { states?: WorkflowState[] };
  limits?: Record<string, unknown>;
  guardrails?: { input?: Guard[]; output?: Guard[] };
  agents?: string[];
  collaborations?: { agent: string; when?: string; allow_revisit?: number }[];
  input_schema?: unknown;
  output_schema?: unknown;
  visible?: boolean;
  planning_strategy?: string;
  grounding?: string;
  temperature?: number;
  top_p?: number;
  max_output_tokens?: number;
  effort?: string;
  history?: string;
  card?: { url?: string };
}

export function definitionOf(agent: AgentDetail): Definition {
  return agent.definition as unknown as Definition;
}

/** Keys whose words alone would read badly. */
const NAMES: Record<string, string> = { max_cost_usd: 'Max cost (USD)', min_success: 'Required answers', on_quorum_fail: 'If too few answer' };

/** `gathering_requirements` as "Gathering requirements". */
export function words(key: string): string {
  return capitalize(key.replace(/[_-]+/g, ' ').trim());
}

/** A value of a definition in one line: lists with commas, flags as yes and no. */
export function inline(value: unknown): string {
  if (value === null || value === undefined || value === '') return '–';
  if (Array.isArray(value)) return value.length === 0 ? 'none' : value.map(inline).join(', ');
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

/** The pairs of a map that have a simple value, for a list of facts. */
export function facts(map: Record<string, unknown> | undefined): [string, string][] {
  return Object.entries(map ?? {}).map(([key, value]) => [NAMES[key] ?? words(key), fact(value)]);
}

/** Numbers with separators; a flag or an empty list begins with a capital, names stay as they are written. */
function fact(value: unknown): string {
  if (typeof value === 'number') return count(value);
  const isWord = typeof value === 'boolean' || (Array.isArray(value) && value.length === 0);
  return isWord ? capitalize(inline(value)) : inline(value);
}

/** The checks of an agent's guardrails, in the order in which they are made. */
export function guardFacts(guardrails: Definition['guardrails']): [string, string][] {
  const sides: [string, Guard[]][] = [['Input', guardrails?.input ?? []], ['Output', guardrails?.output ?? []]];
  return sides.filter(([, guards]) => guards.length > 0).map(([side, guards]) => [side, guards.map(guardText).join(' · ')]);
}

function guardText({ max_length, deny, pii, judge }: Guard): string {
  if (max_length !== undefined) return `at most ${count(max_length)} characters`;
  if (deny) return `not ${deny.join(', ')}`;
  if (pii) return `no ${pii.join(', ')}`;
  return judge ? `judged by ${judge}` : 'JSON of a schema';
}

/** The names of a list as they are written, or "None". */
export function names(list: string[]): string {
  return list.join(', ') || 'None';
}

/** Whether a step goes on somewhere else than to the one below it. */
export function jumps(states: WorkflowState[], at: number): string[] {
  const following = states[at + 1]?.name;
  return (states[at]?.next ?? []).filter((name) => name !== following);
}
