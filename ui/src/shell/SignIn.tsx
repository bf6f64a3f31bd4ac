import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useEffect, useState, type FormEvent } from 'react';
import { Problem, sentence } from '@/api/problem';
import { signIn } from '@/api/session';
import type { Me } from '@/api/types';
import { Button, CopyButton } from '@/design';
import { KeyField } from './KeyField';
import { Logo } from './Logo';
import styles from './SignIn.module.css';
import { ThemeSwitch } from './ThemeSwitch';

const COMMAND = 'baton keys create --user NAME --role user';

/** In place of everything while the server asks for a credential. The address stays, so the page that was wanted comes next. */
export function SignIn() {
  const client = useQueryClient();
  const [key, setKey] = useState('');
  const [isMissing, setMissing] = useState(false);
  const attempt = useMutation({
    mutationFn: (text: string) => check(text),
    onSuccess: ({ tenant_id, user_id }, text) => {
      signIn(text, `${tenant_id}/${user_id}`);
      // What an earlier user could read is dropped, not only read anew.
      return client.resetQueries();
    },
  });
  useEffect(() => {
    document.title = 'Sign in · Baton';
  }, []);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    setMissing(key.trim() === '');
    if (key.trim()) attempt.mutate(key.trim());
  };
  const error = isMissing ? 'Enter an API key.' : attempt.error ? reason(attempt.error) : undefined;
  return (
    <main className={styles.page}>
      <div className={styles.card}>
        <div className={styles.head}>
          <Logo size={40} />
          <h1>Sign in to Baton</h1>
          <p className="soft">This server asks for an API key or an access token.</p>
        </div>
        <form onSubmit={submit} className={styles.form} noValidate>
          <KeyField value={key} onChange={setKey} error={error} />
          <Button type="submit" kind="primary" busy={attempt.isPending}>Sign in</Button>
          <p className={styles.note}>The key is kept in this tab only and is forgotten when you close it.</p>
        </form>
        <div className={styles.help}>
          <h2>Where do I get a key?</h2>
          <p className="soft">The administrator of this server creates it on the command line; it is shown once:</p>
          <div className={styles.command}><code>{COMMAND}</code><CopyButton text={COMMAND} label="Copy the command" /></div>
        </div>
      </div>
      <ThemeSwitch />
    </main>
  );
}

/** Tries a key without keeping it: a wrong one is never stored. */
async function check(key: string): Promise<Me> {
  // A header takes visible ASCII only; anything else cannot be a key.
  if (!/^[\x21-\x7e]+$/.test(key)) throw new Problem(401, 'unauthenticated', 'not a key');
  const response = await fetch('/api/v1/me', { headers: { Authorization: `Bearer ${key}` } });
  if (!response.ok) throw await Problem.of(response);
  return (await response.json()) as Me;
}

function reason(error: Error): string {
  if (error instanceof Problem && error.status === 401) return 'This key is not valid, or it was revoked.';
  if (error instanceof TypeError) return 'The server cannot be reached. Check that it is running, then try again.';
  return sentence(error);
}
