import { plural } from '@/lib/format';
import { isObject, type Field } from './fields';

/** What a person has typed: texts, ticks and groups, by the names of the fields. */
export type DraftValue = string | boolean | string[] | Draft;
export interface Draft { [name: string]: DraftValue }
/** Messages by JSON pointer, as the server writes them: `/path`. */
export type Errors = Record<string, string>;

/** The form as it begins. */
export function draftOf(fields: Field[], value: unknown): Draft {
  const values = isObject(value) ? value : {};
  return Object.fromEntries(fields.map((field) => [field.name, draftValue(field, field.name in values ? values[field.name] : field.schema.default)]));
}

function draftValue(field: Field, value: unknown): DraftValue {
  switch (field.kind) {
    case 'group': return draftOf(field.fields, value);
    case 'boolean': return value === true;
    case 'choices': return Array.isArray(value) ? value.map((one) => JSON.stringify(one)) : [];
    case 'choice': return value === undefined ? '' : JSON.stringify(value);
    case 'list': return Array.isArray(value) ? value.join('\n') : '';
    case 'json': return value === undefined ? '' : JSON.stringify(value, null, 2);
    default: return value === undefined || value === null ? '' : String(value);
  }
}

export type Parsed = { value: Record<string, unknown> } | { errors: Errors };

/**
 * The values of the form, or what is wrong with it. An optional field that is empty is left out, unless the value had it before. The
 * server checks again: this only spares a round trip.
 */
export function valueOf(fields: Field[], draft: Draft, before: unknown = {}): Parsed {
  const errors: Errors = {};
  const value = read(fields, draft, isObject(before) ? before : {}, '', errors);
  return Object.keys(errors).length > 0 ? { errors } : { value };
}

function read(fields: Field[], draft: Draft, before: Record<string, unknown>, at: string, errors: Errors): Record<string, unknown> {
  const value: Record<string, unknown> = {};
  for (const field of fields) {
    const pointer = pointerTo(at, field.name);
    const one = readField(field, draft[field.name], before[field.name], pointer, errors);
    if (one !== undefined) value[field.name] = one;
    else if (field.isRequired && !(pointer in errors)) errors[pointer] = 'This is required.';
  }
  return value;
}

function readField(field: Field, draft: DraftValue | undefined, before: unknown, pointer: string, errors: Errors): unknown {
  switch (field.kind) {
    case 'group': {
      const group = read(field.fields, (draft ?? {}) as Draft, isObject(before) ? before : {}, pointer, errors);
      return field.isRequired || before !== undefined || Object.keys(group).length > 0 ? group : undefined;
    }
    case 'boolean': return draft === true || field.isRequired || before !== undefined ? draft === true : undefined;
    case 'choices': return listed(field, (draft as string[]).map((one) => JSON.parse(one) as unknown), before, pointer, errors);
    case 'list': return listed(field, String(draft ?? '').split('\n').map((line) => line.trim()).filter(Boolean), before, pointer, errors);
    default: return readText(field, String(draft ?? ''), before, pointer, errors);
  }
}

function listed(field: Field, list: unknown[], before: unknown, pointer: string, errors: Errors): unknown[] | undefined {
  const { minItems = 0, maxItems = Infinity } = field.schema;
  if (list.length === 0 && !field.isRequired && before === undefined) return undefined;
  if (list.length < minItems) errors[pointer] = `At least ${plural(minItems, 'entry', 'entries')}.`;
  if (list.length > maxItems) errors[pointer] = `At most ${plural(maxItems, 'entry', 'entries')}.`;
  return list;
}

function readText(field: Field, text: string, before: unknown, pointer: string, errors: Errors): unknown {
  const isText = field.kind === 'text' || field.kind === 'long';
  if (!isText && text.trim() === '') return undefined;
  if (text === '' && !field.isRequired && before === undefined) return undefined;
  if (field.kind === 'choice' || field.kind === 'json') return parsed(text, pointer, errors);
  if (!isText) return numeric(field, text, pointer, errors);
  const problem = textProblem(field, text);
  if (problem) errors[pointer] = problem;
  return text;
}

function parsed(text: string, pointer: string, errors: Errors): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    errors[pointer] = 'This is not valid JSON.';
    return undefined;
  }
}

function numeric({ kind, schema }: Field, text: string, pointer: string, errors: Errors): number | undefined {
  const number = Number(text);
  const { minimum = -Infinity, maximum = Infinity } = schema;
  if (!Number.isFinite(number)) errors[pointer] = 'This is not a number.';
  else if (kind === 'integer' && !Number.isSafeInteger(number)) errors[pointer] = 'This is not a whole number.';
  else if (number < minimum) errors[pointer] = `At least ${minimum}.`;
  else if (number > maximum) errors[pointer] = `At most ${maximum}.`;
  return number;
}

function textProblem({ schema: { minLength = 0, maxLength = Infinity, pattern } }: Field, text: string): string | undefined {
  const length = [...text].length;
  if (length < minLength) return length === 0 ? 'This is required.' : `At least ${plural(minLength, 'character')}.`;
  if (length > maxLength) return `At most ${plural(maxLength, 'character')}.`;
  return pattern !== undefined && !matches(pattern, text) ? `This does not match ${pattern}.` : undefined;
}

/** A pattern that the browser cannot read is left to the server. */
function matches(pattern: string, text: string): boolean {
  try {
    return new RegExp(pattern, 'u').test(text);
  } catch {
    return true;
  }
}

/** As RFC 6901 writes it. */
export function pointerTo(at: string, name: string): string {
  return `${at}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
}

/** The same JSON, whatever the order of its keys. */
export function isSame(one: unknown, other: unknown): boolean {
  return canonical(one) === canonical(other);
}

function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (!isObject(value)) return JSON.stringify(value) ?? 'null';
  return `{${Object.keys(value).sort().map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`).join(',')}}`;
}
