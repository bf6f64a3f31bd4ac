import { describe, expect, it } from 'vitest';
import { draftOf, isSame, valueOf, type Draft } from './draft';
import { fieldsOf, type JsonSchema } from './fields';

const kinds = (schema: JsonSchema, value: unknown = {}) => Object.fromEntries((fieldsOf(schema, value) ?? []).map(({ name, kind }) => [name, kind]));
const object = (properties: Record<string, JsonSchema>, required: string[] = []): JsonSchema => ({ type: 'object', properties, required });
const edit = (schema: JsonSchema, value: unknown, change: Draft = {}) => {
  const fields = fieldsOf(schema, value) ?? [];
  return valueOf(fields, { ...draftOf(fields, value), ...change }, value);
};

const WRITE_FILE = object({ path: { type: 'string', minLength: 1 }, content: { type: 'string' } }, ['path', 'content']);

describe('fieldsOf', () => {
  it('chooses an input for each type', () => {
    const schema = object({
      path: { type: 'string' }, content: { type: 'string' }, size: { type: 'integer' }, share: { type: ['number', 'null'] }, force: { type: 'boolean' },
      mode: { enum: ['a', 'b'] }, tags: { type: 'array', items: { type: 'string' } }, days: { type: 'array', items: { enum: ['mo', 'tu'] } }, where: object({ city: { type: 'string' } }), any: {}, either: { type: ['string', 'number'] },
    });
    expect(kinds(schema)).toEqual({ path: 'text', content: 'long', size: 'integer', share: 'number', force: 'boolean', mode: 'choice', tags: 'list', days: 'choices', where: 'group', any: 'json', either: 'json' });
  });

  it('shows what the schema does not know, and what does not match it', () => {
    expect(kinds(object({ path: { type: 'string' } }), { path: 7, extra: 'x', more: { a: 1 } })).toEqual({ path: 'json', extra: 'text', more: 'group' });
  });

  it('leaves to JSON what a form cannot stand for', () => {
    for (const [schema, value] of [[{ type: 'array' }, {}], [{ type: 'string' }, {}], [object({}), {}], [WRITE_FILE, 'text'], [WRITE_FILE, [1]]] as [JsonSchema, unknown][]) {
      expect(fieldsOf(schema, value)).toBeUndefined();
    }
  });

  it('ends at some depth', () => {
    const nested = (depth: number): JsonSchema => object({ next: depth > 0 ? nested(depth - 1) : { type: 'string' } });
    const [first] = fieldsOf(nested(9)) ?? [];
    expect(first?.fields[0]?.fields[0]).toMatchObject({ kind: 'json' });
  });
});

describe('valueOf', () => {
  it('gives back what it was made from', () => {
    const value = { path: 'a.txt', content: '', count: 0, ratio: 0.5, on: false, list: ['x', 'y'], deep: { a: { b: [1, { c: null }] } }, nothing: null };
    for (const schema of [WRITE_FILE, object({ count: { type: 'integer' }, on: { type: 'boolean' }, list: { type: 'array', items: { type: 'string' } }, deep: { type: 'object' } })]) {
      expect(edit(schema, value)).toEqual({ value });
    }
  });

  it('takes what was typed', () => {
    expect(edit(WRITE_FILE, { path: 'a', content: 'b' }, { path: 'notes/a.md', content: 'x\ny' })).toEqual({ value: { path: 'notes/a.md', content: 'x\ny' } });
  });

  it('leaves out what is optional and empty', () => {
    const schema = object({ name: { type: 'string' }, size: { type: 'integer' }, on: { type: 'boolean' }, tags: { type: 'array', items: { type: 'string' } }, where: object({ city: { type: 'string' } }) });
    expect(edit(schema, {})).toEqual({ value: {} });
    expect(edit(schema, { name: 'x' }, { name: '' })).toEqual({ value: { name: '' } });
  });

  it('says what is wrong, by field', () => {
    const schema = object({ path: { type: 'string', minLength: 1 }, n: { type: 'integer', minimum: 1, maximum: 9 }, code: { type: 'string', pattern: '^[a-z]+$' }, mode: { enum: ['a'] }, raw: {}, days: { type: 'array', items: { type: 'string' }, minItems: 2 }, 'a/b': object({ c: { type: 'string' } }, ['c']) }, ['path', 'mode', 'a/b']);
    expect(edit(schema, {}, { path: '', n: '1.5', code: 'A1', raw: '{', days: 'one', 'a/b': { c: '' } })).toEqual({
      errors: { '/path': 'This is required.', '/n': 'This is not a whole number.', '/code': 'This does not match ^[a-z]+$.', '/mode': 'This is required.', '/raw': 'This is not valid JSON.', '/days': 'At least 2 entries.' },
    });
    expect(edit(schema, {}, { path: 'x', n: '12', mode: '"a"' })).toEqual({ errors: { '/n': 'At most 9.' } });
  });

  it('keeps numbers and booleans of choices', () => {
    const schema = object({ level: { enum: [1, 2] }, days: { type: 'array', items: { enum: ['mo', 'tu'] } } });
    expect(edit(schema, {}, { level: '2', days: ['"tu"'] })).toEqual({ value: { level: 2, days: ['tu'] } });
  });
});

describe('isSame', () => {
  it('ignores the order of keys only', () => {
    expect(isSame({ a: 1, b: [1, { c: 2 }] }, { b: [1, { c: 2 }], a: 1 })).toBe(true);
    expect(isSame({ a: [1, 2] }, { a: [2, 1] })).toBe(false);
    expect(isSame({ a: '1' }, { a: 1 })).toBe(false);
  });
});
