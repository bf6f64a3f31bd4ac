import { useMemo, useState } from 'react';
import { draftOf, isSame, valueOf, type Draft, type Errors, type Parsed } from './draft';
import { fieldsOf, type Field, type JsonSchema } from './fields';

export interface ValueEditor {
  /** Absent where only JSON can be edited. */
  fields: Field[] | undefined;
  isJson: boolean;
  draft: Draft;
  json: string;
  errors: Errors;
  setDraft: (draft: Draft) => void;
  setJson: (json: string) => void;
  /** Between the form and JSON. What was typed is kept if it can be read. */
  toggle: () => void;
  /** The value as it is now. Errors are shown from then on. */
  read: () => { value: unknown; isChanged: boolean } | undefined;
  /** What the server found wrong. */
  refuse: (errors: Errors) => void;
}

/** A value that a person edits: as the form of its schema, or as JSON. */
export function useValue(schema: JsonSchema | undefined, initial: unknown): ValueEditor {
  const fields = useMemo(() => fieldsOf(schema, initial ?? {}), [schema, initial]);
  const [isJson, setIsJson] = useState(fields === undefined);
  const [draft, setDraft] = useState<Draft>(() => draftOf(fields ?? [], initial));
  const [json, setJson] = useState(() => JSON.stringify(initial ?? {}, null, 2));
  const [errors, setErrors] = useState<Errors>({});
  const parse = (): Parsed | { value: unknown } => (isJson || !fields ? parseJson(json) : valueOf(fields, draft, initial));
  return {
    fields, isJson, draft, json, errors,
    setDraft: (next) => { setDraft(next); setErrors({}); },
    setJson: (next) => { setJson(next); setErrors({}); },
    refuse: setErrors,
    toggle() {
      const now = parse();
      if ('errors' in now) return setErrors(now.errors);
      if (isJson) setDraft(draftOf(fields ?? [], now.value));
      else setJson(JSON.stringify(now.value, null, 2));
      setErrors({});
      setIsJson(!isJson);
    },
    read() {
      const now = parse();
      setErrors('errors' in now ? now.errors : {});
      return 'errors' in now ? undefined : { value: now.value, isChanged: !isSame(now.value, initial ?? {}) };
    },
  };
}

function parseJson(text: string): { value: unknown } | { errors: Errors } {
  try {
    return { value: JSON.parse(text) as unknown };
  } catch (error) {
    return { errors: { '': error instanceof Error ? `This is not valid JSON: ${error.message}` : 'This is not valid JSON.' } };
  }
}
