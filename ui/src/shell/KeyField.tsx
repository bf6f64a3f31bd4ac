import { Eye, EyeOff } from 'lucide-react';
import { useEffect, useId, useRef, useState } from 'react';
import { IconButton } from '@/design';
import styles from './KeyField.module.css';

/** A secret that can be shown. Password managers are asked to leave it alone. */
export function KeyField({ value, onChange, error }: { value: string; onChange: (value: string) => void; error: string | undefined }) {
  const [isShown, setShown] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  const id = useId();
  useEffect(() => input.current?.focus(), []);
  return (
    <div className={styles.field}>
      <label htmlFor={id} className={styles.label}>API key</label>
      <div className={styles.box}>
        <input ref={input} id={id} type={isShown ? 'text' : 'password'} autoComplete="off" autoCapitalize="off" spellCheck={false} placeholder="baton_…" className={styles.input}
          value={value} onChange={(event) => onChange(event.target.value)} aria-invalid={error ? true : undefined} aria-describedby={error ? `${id}-error` : undefined} />
        <IconButton icon={isShown ? EyeOff : Eye} label={isShown ? 'Hide the key' : 'Show the key'} size="small" className={styles.toggle} onClick={() => setShown(!isShown)} />
      </div>
      {error && <p id={`${id}-error`} role="alert" className={styles.error}>{error}</p>}
    </div>
  );
}
