import { useMutation, useQueryClient } from '@tanstack/react-query';
import { Copy } from 'lucide-react';
import { useId, useState, type FormEvent } from 'react';
import { sentence } from '@/api/problem';
import { Button, CheckField, CopyTextButton, Dialog, ErrorNote, Notice, SelectField, TextField } from '@/design';
import { createKey, EMPTY, errorsOf, EXPIRIES, requestOf, ROLES, type CreatedKey, type Draft } from './data';
import styles from './Keys.module.css';

/** Creates a key and shows it once. */
export function CreateKey({ onClose }: { onClose: () => void }) {
  const [draft, setDraft] = useState<Draft>(EMPTY);
  const form = useId();
  const client = useQueryClient();
  const create = useMutation({
    mutationFn: () => createKey(requestOf(draft, Date.now())),
    onSettled: () => client.invalidateQueries({ queryKey: ['keys'] }),
  });
  if (create.data) return <ShownOnce created={create.data} onClose={onClose} />;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    create.mutate();
  };
  const actions = (
    <>
      <Button onClick={onClose}>Cancel</Button>
      <Button kind="primary" type="submit" form={form} busy={create.isPending}>Create</Button>
    </>
  );
  return (
    <Dialog title="Create a key" onClose={onClose} actions={actions}>
      <form id={form} className={styles.form} onSubmit={submit}>
        <Fields draft={draft} error={create.error} onChange={(change) => setDraft({ ...draft, ...change })} />
        {create.error && <ErrorNote>{sentence(create.error)}</ErrorNote>}
      </form>
    </Dialog>
  );
}

function Fields({ draft, error, onChange }: { draft: Draft; error: unknown; onChange: (change: Partial<Draft>) => void }) {
  const errors = errorsOf(error);
  const toggle = (role: string, isOn: boolean) => onChange({ roles: isOn ? [...draft.roles, role] : draft.roles.filter((one) => one !== role) });
  return (
    <>
      {/* React's autoFocus comes before the dialog is shown; the attribute is read when it is. */}
      <TextField ref={(input) => input?.setAttribute('autofocus', '')} required label="Name" hint="What the key is for" maxLength={200} value={draft.name} error={errors.name} onChange={(event) => onChange({ name: event.target.value })} />
      <TextField label="User" hint="Requests with the key act for this user; you, if it is empty" maxLength={255} autoComplete="off" value={draft.user} error={errors.user_id} onChange={(event) => onChange({ user: event.target.value })} />
      <fieldset className={styles.roles}>
        <legend>Roles</legend>
        {ROLES.map(({ value, hint }) => <CheckField key={value} label={<>{value} <span className={styles.roleHint}>{hint}</span></>} checked={draft.roles.includes(value)} onChange={(event) => toggle(value, event.target.checked)} />)}
        {errors.roles && <p role="alert" className={styles.error}>{errors.roles}</p>}
      </fieldset>
      <TextField label="Other roles" hint="Roles of the server’s configuration, separated by spaces" autoComplete="off" value={draft.otherRoles} onChange={(event) => onChange({ otherRoles: event.target.value })} />
      <TextField label="Only these permissions" hint="Such as thread:read; all of the roles, if it is empty" autoComplete="off" value={draft.scopes} error={errors.scopes} onChange={(event) => onChange({ scopes: event.target.value })} />
      <SelectField label="Expires" value={draft.expires} error={errors.expires_at} onChange={(event) => onChange({ expires: event.target.value })}>
        {EXPIRIES.map(({ value, label }) => <option key={value} value={value}>{label}</option>)}
      </SelectField>
    </>
  );
}

/** The key is not stored anywhere, so this is the only time that it is shown. */
function ShownOnce({ created, onClose }: { created: CreatedKey; onClose: () => void }) {
  return (
    <Dialog title="Copy the key now" onClose={onClose} actions={<><CopyTextButton icon={Copy} text={created.key} label="Copy the key" /><Button kind="primary" onClick={onClose}>Done</Button></>}>
      <Notice tone="warning">The key is not shown again. Store it where the program finds it.</Notice>
      <code className={styles.secret} data-testid="new-key">{created.key}</code>
    </Dialog>
  );
}
