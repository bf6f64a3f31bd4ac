import { useEffect, useRef, useState, type KeyboardEvent } from 'react';
import { Button } from '@/design';
import styles from './Message.module.css';
import { useAutosize } from './useAutosize';

/** A sent message as an editable text; it is sent as a new one. */
export function MessageEditor({ text: initial, onSend, onCancel }: { text: string; onSend: (text: string) => void; onCancel: () => void }) {
  const [text, setText] = useState(initial);
  const area = useRef<HTMLTextAreaElement>(null);
  useAutosize(area, text);
  useEffect(() => {
    area.current?.focus();
    area.current?.setSelectionRange(initial.length, initial.length);
  }, [initial]);
  const send = () => text.trim() && onSend(text.trim());
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Escape') {
      event.preventDefault();
      onCancel();
    } else if (event.key === 'Enter' && !event.shiftKey && !event.nativeEvent.isComposing) {
      event.preventDefault();
      send();
    }
  };
  return (
    <div className={styles.editor}>
      <textarea ref={area} className={styles.editorText} aria-label="Edit message" dir="auto" rows={1} value={text} onChange={(event) => setText(event.target.value)} onKeyDown={onKeyDown} />
      <div className={styles.editorActions}>
        <Button size="small" kind="ghost" onClick={onCancel}>Cancel</Button>
        <Button size="small" kind="primary" disabled={!text.trim()} onClick={send}>Send</Button>
      </div>
    </div>
  );
}
