import type { Call, Step } from '@/api/types';

export interface ToolRequest { name: string; arguments: string }
export interface Reply { text: string; reasoning: string; calls: ToolRequest[] }

type Fields = Record<string, unknown>;

const isFields = (value: unknown): value is Fields => typeof value === 'object' && value !== null && !Array.isArray(value);

/** The words of a value: a text, parts of a message, or something with a text inside. Anything else is shown as JSON. */
export function textOf(value: unknown): string {
  if (value === undefined || value === null) return '';
  if (typeof value === 'string') return value;
  if (Array.isArray(value) && value.every((part) => isFields(part) && 'type' in part)) return value.map(partText).join('\n');
  if (isFields(value)) {
    for (const name of ['text', 'content', 'answer', 'message']) {
      const inner = value[name];
      if (typeof inner === 'string' || Array.isArray(inner)) return textOf(inner);
    }
  }
  return pretty(value);
}

function partText(part: Fields): string {
  if (typeof part.text === 'string') return part.text;
  if (typeof part.name === 'string') return `[file: ${part.name}]`;
  return part.type === 'data' ? pretty(part.data) : `[${String(part.type)}]`;
}

/** JSON with line breaks, also of a text that is JSON. */
export function pretty(value: unknown): string {
  if (typeof value !== 'string') return JSON.stringify(value, null, 2) ?? '';
  const trimmed = value.trim();
  if (!trimmed.startsWith('{') && !trimmed.startsWith('[')) return value;
  try {
    return JSON.stringify(JSON.parse(trimmed), null, 2);
  } catch {
    return value;
  }
}

/** What a model said in a turn. */
export function replyOf(output: unknown): Reply {
  const reply = isFields(output) && isFields(output.reply) ? output.reply : output;
  if (!isFields(reply)) return { text: textOf(reply), reasoning: '', calls: [] };
  const calls = [reply.calls, reply.tool_calls].find(Array.isArray) ?? [];
  const reasoning = Array.isArray(reply.reasoning) ? reply.reasoning.map(textOf).join('\n\n') : textOf(reply.reasoning);
  return { text: typeof reply.text === 'string' ? reply.text : textOf(reply.content), reasoning, calls: calls.filter(isFields).map(requestOf) };
}

function requestOf(call: Fields): ToolRequest {
  return { name: String(call.name ?? call.tool ?? 'tool'), arguments: pretty(call.arguments ?? call.input ?? {}) };
}

export interface ToolStep { name: string; arguments: string; result: string; failed: boolean }

/** A tool's call and what it returned. Its name is in the input, in the output or in the ledger. */
export function toolOf(step: Step, calls: Call[]): ToolStep {
  const input = isFields(step.input) ? step.input : undefined;
  const output = isFields(step.output) ? step.output : undefined;
  const name = input?.name ?? input?.tool ?? output?.name ?? calls.find((call) => call.path === step.path)?.name ?? 'tool';
  const isRequest = input !== undefined && 'arguments' in input;
  return {
    name: String(name),
    arguments: step.input === undefined ? '' : pretty(isRequest ? input.arguments : step.input),
    result: step.output === undefined ? '' : pretty(output && 'content' in output ? textOf(output.content) : textOf(step.output)),
    failed: output?.failed === true,
  };
}

/** The number at the end of a path: 2 for `…/turn:2`. */
export function numberOf(path: string): string {
  return /:(\d+)$/.exec(path)?.[1] ?? '';
}

export function stepTitle(step: Step, calls: Call[]): string {
  switch (step.kind) {
    case 'turn': return `Model turn ${numberOf(step.path)}`.trim();
    case 'tool': return toolOf(step, calls).name;
    case 'session': return 'Task';
    case 'say': return 'Text shown';
    case 'round': return `Round ${numberOf(step.path)}`.trim();
    case 'note': return `Note: ${step.path.split('/').at(-1)}`;
  }
}
