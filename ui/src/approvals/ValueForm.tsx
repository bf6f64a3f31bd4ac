import { Braces, ListChecks } from 'lucide-react';
import { Button, TextArea } from '@/design';
import styles from './Form.module.css';
import { SchemaForm } from './SchemaForm';
import type { ValueEditor } from './useValue';

/** The editor of a value: the fields of its schema, or JSON. */
export function ValueForm({ editor, label }: { editor: ValueEditor; label: string }) {
  const { fields, isJson, errors } = editor;
  const first = errors[''] ?? Object.entries(errors).map(([pointer, text]) => `${pointer}: ${text}`)[0];
  return (
    <div className={styles.fields} role="group" aria-label={label}>
      {isJson || !fields
        ? <TextArea label={label} hideLabel isCode rows={6} spellCheck={false} dir="ltr" value={editor.json} error={first} onChange={(event) => editor.setJson(event.target.value)} />
        : <SchemaForm fields={fields} draft={editor.draft} errors={errors} onChange={editor.setDraft} />}
      {errors[''] && !isJson && <p role="alert" className={styles.error}>{errors['']}</p>}
    </div>
  );
}

/** Where there is a form, its value can be edited as JSON too. */
export function JsonSwitch({ editor: { fields, isJson, toggle } }: { editor: ValueEditor }) {
  return fields && <Button kind="ghost" className={styles.switch} icon={isJson ? ListChecks : Braces} onClick={toggle}>{isJson ? 'Form' : 'JSON'}</Button>;
}
