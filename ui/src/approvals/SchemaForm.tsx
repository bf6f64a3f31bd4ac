import { useId } from 'react';
import { CheckField, SelectField, TextArea, TextField } from '@/design';
import { pointerTo, type Draft, type DraftValue, type Errors } from './draft';
import type { Field } from './fields';
import styles from './Form.module.css';

interface Props {
  fields: Field[];
  draft: Draft;
  errors: Errors;
  onChange: (draft: Draft) => void;
  /** Where the fields are in the whole value. */
  at?: string;
}

/** The fields of a JSON Schema. */
export function SchemaForm({ fields, draft, errors, onChange, at = '' }: Props) {
  return (
    <div className={styles.fields}>
      {fields.map((field) => (
        <FormField key={field.name} field={field} value={draft[field.name] ?? ''} errors={errors} at={pointerTo(at, field.name)} onChange={(value) => onChange({ ...draft, [field.name]: value })} />
      ))}
    </div>
  );
}

interface FieldProps { field: Field; value: DraftValue; errors: Errors; at: string; onChange: (value: DraftValue) => void }

function FormField({ field, value, errors, at, onChange }: FieldProps) {
  const shared = { label: <Label field={field} />, hint: field.hint, error: errors[at], required: field.isRequired };
  const text = typeof value === 'string' ? value : '';
  switch (field.kind) {
    case 'group':
      return <fieldset className={styles.group}><legend><Label field={field} /></legend><SchemaForm fields={field.fields} draft={value as Draft} errors={errors} at={at} onChange={onChange} /></fieldset>;
    case 'boolean': return <CheckField {...shared} required={false} checked={value === true} onChange={(event) => onChange(event.target.checked)} />;
    case 'choice': return <Choice field={field} value={text} error={errors[at]} onChange={onChange} />;
    case 'choices': return <Choices field={field} value={value as string[]} error={errors[at]} onChange={onChange} />;
    case 'list': return <TextArea {...shared} hint={field.hint ? `${field.hint} One in each line.` : 'One in each line.'} dir="auto" value={text} onChange={(event) => onChange(event.target.value)} />;
    case 'json': return <TextArea {...shared} isCode spellCheck={false} dir="ltr" value={text} onChange={(event) => onChange(event.target.value)} />;
    case 'long': return <TextArea {...shared} dir="auto" spellCheck={false} value={text} onChange={(event) => onChange(event.target.value)} />;
    default: return <TextField {...shared} {...inputOf(field)} dir="auto" value={text} onChange={(event) => onChange(event.target.value)} />;
  }
}

function Label({ field }: { field: Field }) {
  return <>{field.label}{!field.isRequired && <span className={styles.optional}> optional</span>}</>;
}

const FORMATS: Record<string, string> = { date: 'date', email: 'email', uri: 'url', url: 'url', time: 'time' };

function inputOf({ kind, schema }: Field) {
  if (kind === 'number' || kind === 'integer') return { type: 'text', inputMode: kind === 'integer' ? ('numeric' as const) : ('decimal' as const) };
  return { type: FORMATS[schema.format ?? ''] ?? 'text', spellCheck: false };
}

/** Up to this many choices are all in sight. */
const RADIOS = 4;

function Choice({ field, value, error, onChange }: { field: Field; value: string; error: string | undefined; onChange: (value: string) => void }) {
  const id = useId();
  const options = field.options.map((option) => ({ key: JSON.stringify(option), text: String(option) }));
  if (options.length > RADIOS || !field.isRequired) {
    return (
      <SelectField label={<Label field={field} />} hint={field.hint} error={error} value={value} onChange={(event) => onChange(event.target.value)}>
        {(!field.isRequired || value === '') && <option value="">{field.isRequired ? 'Choose…' : '–'}</option>}
        {options.map(({ key, text }) => <option key={key} value={key}>{text}</option>)}
      </SelectField>
    );
  }
  return (
    <fieldset className={styles.options} aria-invalid={error ? true : undefined}>
      <legend><Label field={field} /></legend>
      {options.map(({ key, text }) => <label key={key} className={styles.option}><input type="radio" name={id} checked={value === key} onChange={() => onChange(key)} /><span dir="auto">{text}</span></label>)}
      {(error || field.hint) && <p className={error ? styles.error : styles.hint}>{error ?? field.hint}</p>}
    </fieldset>
  );
}

function Choices({ field, value, error, onChange }: { field: Field; value: string[]; error: string | undefined; onChange: (value: string[]) => void }) {
  const toggle = (key: string, isOn: boolean) => onChange(field.options.map((option) => JSON.stringify(option)).filter((one) => (one === key ? isOn : value.includes(one))));
  return (
    <fieldset className={styles.options} aria-invalid={error ? true : undefined}>
      <legend><Label field={field} /></legend>
      {field.options.map((option) => {
        const key = JSON.stringify(option);
        return <label key={key} className={styles.option}><input type="checkbox" checked={value.includes(key)} onChange={(event) => toggle(key, event.target.checked)} /><span dir="auto">{String(option)}</span></label>;
      })}
      {(error || field.hint) && <p className={error ? styles.error : styles.hint}>{error ?? field.hint}</p>}
    </fieldset>
  );
}
