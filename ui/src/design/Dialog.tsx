import { X } from 'lucide-react';
import { useEffect, useId, useRef, type ReactNode } from 'react';
import { IconButton } from './Button';
import { cx } from './cx';
import styles from './Dialog.module.css';

interface DialogProps {
  title: string;
  onClose: () => void;
  children: ReactNode;
  /** Buttons below the content, the main action last. */
  actions?: ReactNode;
  /** `sheet` slides in from the right, `drawer` from the left. */
  kind?: 'dialog' | 'sheet' | 'drawer' | 'palette';
  hideTitle?: boolean;
}

/** A modal layer on the native `dialog`: the browser keeps the focus inside, closes on Esc and gives the focus back. */
export function Dialog({ title, onClose, children, actions, kind = 'dialog', hideTitle }: DialogProps) {
  const ref = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const dialog = ref.current;
    if (dialog && !dialog.open) {
      dialog.showModal();
      // A question starts at its first answer, which cancels, and not at the button that closes it.
      if (!dialog.querySelector('[autofocus]')) dialog.querySelector<HTMLElement>('[data-actions] button')?.focus();
    }
    return () => dialog?.close();
  }, []);
  // The event comes late: a dialog that was closed and shown again in between, as by React's strict mode, is not closed.
  const closed = () => ref.current?.open || onClose();
  return (
    // A click on the backdrop has the dialog itself as its target.
    // eslint-disable-next-line jsx-a11y/click-events-have-key-events, jsx-a11y/no-noninteractive-element-interactions
    <dialog ref={ref} className={cx(styles.dialog, styles[kind])} aria-labelledby={id} onClose={closed} onClick={(event) => event.target === ref.current && onClose()}>
      <div className={styles.body}>
        <header className={cx(styles.header, hideTitle && 'visually-hidden')}>
          <h2 id={id}>{title}</h2>
          <IconButton icon={X} label="Close" size="small" onClick={onClose} />
        </header>
        {children}
        {actions && <footer className={styles.actions} data-actions>{actions}</footer>}
      </div>
    </dialog>
  );
}
