import { useEffect, useRef, useState } from 'react';
import { sentence } from '@/api/problem';
import styles from './RenameThread.module.css';
import { useRenameThread } from './threads';

/** The title as a field: Enter saves, Esc cancels, leaving it saves. */
export function RenameThread({ threadId, title, onDone }: { threadId: string; title: string; onDone: () => void }) {
  const [text, setText] = useState(title);
  const input = useRef<HTMLInputElement>(null);
  const rename = useRenameThread(threadId);
  useEffect(() => input.current?.select(), []);
  const save = () => {
    const next = text.trim();
    if (rename.isPending) return;
    if (!next || next === title) return onDone();
    rename.mutate(next, { onSuccess: onDone });
  };
  return (
    <form className={styles.form} onSubmit={(event) => { event.preventDefault(); save(); }}>
      <input ref={input} className={styles.input} value={text} dir="auto" maxLength={200} aria-label="New title" aria-invalid={rename.isError || undefined} readOnly={rename.isPending}
        onChange={(event) => setText(event.target.value)} onBlur={() => !rename.isError && save()}
        onKeyDown={(event) => event.key === 'Escape' && (event.preventDefault(), event.stopPropagation(), onDone())} />
      {rename.error && <p role="alert" className={styles.error}>{sentence(rename.error)}</p>}
    </form>
  );
}
