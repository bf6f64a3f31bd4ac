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

/** A tool's call and what it returned. */
export function toolOf(step: Step, calls: Call[], steps: Step[] = []): ToolStep {
  const request = isFields(step.input) && 'name' in step.input && 'arguments' in step.input ? step.input : undefined;
  const output = isFields(step.output) ? step.output : undefined;
  return {
    name: calls.find((call) => call.path === step.path)?.name ?? requested(step.path, steps) ?? String(request?.name ?? output?.name ?? 'tool'),
    arguments: step.input === undefined ? '' : pretty(request ? request.arguments : step.input),
    result: step.output === undefined ? '' : pretty(output && 'content' in output ? textOf(output.content) : textOf(step.output)),
    failed: output?.failed === true,
  };
}

/** The name by which the model asked for it: `…/turn:2/tool:1` is the first call of the reply at `…/turn:2`. Calls that go on or were refused are not in the ledger. */
function requested(path: string, steps: Step[]): string | undefined {
  const [, turn, number] = /^(.*)\/tool:(\d+)$/.exec(path) ?? [];
  const reply = turn && steps.find((other) => other.path === turn && other.kind === 'turn');
  return reply ? replyOf(reply.output).calls[Number(number) - 1]?.name : undefined;
}

/** The number at the end of a path: 2 for `…/turn:2`. */
function numberOf(path: string): string {
  return /:(\d+)$/.exec(path)?.[1] ?? '';
}

export function stepTitle(step: Step, calls: Call[], steps: Step[] = []): string {
  switch (step.kind) {
    case 'turn': return `Model turn ${numberOf(step.path)}`.trim();
    case 'tool': return toolOf(step, calls, steps).name;
    case 'session': return 'Task';
    case 'say': return 'Text shown';
    case 'round': return numberOf(step.path) ? `Round ${numberOf(step.path)}` : `Round: ${step.path.split('/').at(-1)}`;
    case 'wait': return step.path.endsWith('/approval') ? 'Wait for a decision' : 'Run waits';
    case 'note': return `Note: ${step.path.split('/').at(-1)}`;
  }
}
