/** A JSON Schema as far as a form understands it. */
export interface JsonSchema {
  type?: string | string[];
  title?: string;
  description?: string;
  properties?: Record<string, JsonSchema>;
  required?: string[];
  enum?: unknown[];
  const?: unknown;
  items?: JsonSchema;
  default?: unknown;
  format?: string;
  pattern?: string;
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  minItems?: number;
  maxItems?: number;
}

export type FieldKind = 'text' | 'long' | 'number' | 'integer' | 'boolean' | 'choice' | 'choices' | 'list' | 'group' | 'json';

/** One value of a form. */
export interface Field {
  name: string;
  label: string;
  hint?: string | undefined;
  isRequired: boolean;
  kind: FieldKind;
  /** Of `choice` and `choices`. */
  options: unknown[];
  /** Of `group`. */
  fields: Field[];
  schema: JsonSchema;
}

/** Groups below this depth are edited as JSON. */
const MAX_DEPTH = 3;
/** Texts that may be longer get several lines. */
const LONG = 200;
const LONG_NAMES = /^(content|text|body|script|command|code|mission|message|query|prompt|description)$/i;

/**
 * The fields of an object schema. What the value has beyond the schema gets a field too, so that nothing of a call stays unseen.
 * Undefined where a form cannot stand for the schema; it is edited as JSON then.
 */
export function fieldsOf(schema: JsonSchema | undefined, value: unknown = {}, depth = 1): Field[] | undefined {
  if (!isObject(value)) return undefined;
  if (schema && (typeOf(schema) ?? 'object') !== 'object') return undefined;
  const properties = Object.entries(schema?.properties ?? {}).filter(([, one]) => isObject(one));
  const others = Object.entries(value).filter(([name]) => !properties.some(([known]) => known === name));
  if (properties.length === 0 && others.length === 0) return undefined;
  const required = schema?.required ?? [];
  return [
    ...properties.map(([name, one]) => fieldOf(name, one, value[name], required.includes(name), depth)),
    ...others.map(([name, one]) => fieldOf(name, inferred(one), one, false, depth)),
  ];
}

function fieldOf(name: string, schema: JsonSchema, value: unknown, isRequired: boolean, depth: number): Field {
  const fields = typeOf(schema) === 'object' && depth < MAX_DEPTH ? fieldsOf(schema, value ?? {}, depth + 1) : undefined;
  const kind = fields ? 'group' : kindOf(name, schema, value);
  const options = kind === 'choice' ? (schema.enum ?? []) : kind === 'choices' ? (schema.items?.enum ?? []) : [];
  return { name, label: schema.title || name, hint: schema.description, isRequired, kind, options, fields: fields ?? [], schema };
}

function kindOf(name: string, schema: JsonSchema, value: unknown): FieldKind {
  if (value !== undefined && !fits(schema, value)) return 'json';
  if (schema.enum?.every(isPlain)) return 'choice';
  switch (typeOf(schema)) {
    case 'string': return isLong(name, schema, value) ? 'long' : 'text';
    case 'number': return 'number';
    case 'integer': return 'integer';
    case 'boolean': return 'boolean';
    case 'array': return schema.items?.enum?.every(isPlain) ? 'choices' : isList(schema, value) ? 'list' : 'json';
    default: return 'json';
  }
}

/** A value that does not match its type, as a model may write one, is shown as it is. */
function fits(schema: JsonSchema, value: unknown): boolean {
  switch (typeOf(schema)) {
    case 'string': return typeof value === 'string';
    case 'number': return typeof value === 'number';
    case 'integer': return Number.isInteger(value);
    case 'boolean': return typeof value === 'boolean';
    case 'array': return Array.isArray(value);
    default: return true;
  }
}

function isLong(name: string, schema: JsonSchema, value: unknown): boolean {
  const text = typeof value === 'string' ? value : '';
  return text.includes('\n') || text.length > LONG / 2 || (schema.maxLength ?? 0) > LONG || (schema.format === undefined && LONG_NAMES.test(name));
}

/** A list with one text in each line. */
function isList(schema: JsonSchema, value: unknown): boolean {
  const isOfLines = !Array.isArray(value) || value.every((one) => typeof one === 'string' && !one.includes('\n') && one !== '');
  return isOfLines && schema.items !== undefined && typeOf(schema.items) === 'string';
}

/** The one type of a schema, `null` left out: optional values are often written so. */
function typeOf({ type, properties, enum: options }: JsonSchema): string | undefined {
  const types = (Array.isArray(type) ? type : [type]).filter((one) => one !== undefined && one !== 'null');
  if (types.length > 1) return undefined;
  return types[0] ?? (properties ? 'object' : options?.every((one) => typeof one === 'string') ? 'string' : undefined);
}

function inferred(value: unknown): JsonSchema {
  if (typeof value === 'string' || typeof value === 'boolean' || typeof value === 'number') return { type: typeof value };
  return isObject(value) ? { type: 'object' } : {};
}

function isPlain(value: unknown): boolean {
  return ['string', 'number', 'boolean'].includes(typeof value);
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
