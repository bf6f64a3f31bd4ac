import { useId, type InputHTMLAttributes, type ReactNode, type Ref, type SelectHTMLAttributes, type TextareaHTMLAttributes } from 'react';
import { cx } from './cx';
import styles from './Field.module.css';

interface FieldProps { label: ReactNode; hint?: ReactNode; error?: string | undefined; hideLabel?: boolean }

export function TextField({ label, hint, error, hideLabel, className, ...rest }: FieldProps & InputHTMLAttributes<HTMLInputElement> & { ref?: Ref<HTMLInputElement> }) {
  const id = useId();
  return (
    <Frame id={id} label={label} hint={hint} error={error} hideLabel={hideLabel} className={className}>
      <input id={id} {...rest} className={styles.input} {...described(id, hint, error)} />
    </Frame>
  );
}

/** Several lines; it grows with its text up to a third of the screen. */
export function TextArea({ label, hint, error, hideLabel, className, isCode, ...rest }: FieldProps & TextareaHTMLAttributes<HTMLTextAreaElement> & { isCode?: boolean; ref?: Ref<HTMLTextAreaElement> }) {
  const id = useId();
  return (
    <Frame id={id} label={label} hint={hint} error={error} hideLabel={hideLabel} className={className}>
      <textarea id={id} rows={2} {...rest} className={cx(styles.input, styles.area, isCode && styles.code)} {...described(id, hint, error)} />
    </Frame>
  );
}

export function SelectField({ label, hint, error, hideLabel, children, className, ...rest }: FieldProps & SelectHTMLAttributes<HTMLSelectElement>) {
  const id = useId();
  return (
    <Frame id={id} label={label} hint={hint} error={error} hideLabel={hideLabel} className={className}>
      <select id={id} {...rest} className={styles.input} {...described(id, hint, error)}>{children}</select>
    </Frame>
  );
}

/** A box to tick, with its label beside it. */
export function CheckField({ label, hint, error, hideLabel, className, ...rest }: FieldProps & InputHTMLAttributes<HTMLInputElement>) {
  const id = useId();
  return (
    <div className={cx(styles.field, className)}>
      <div className={styles.check}>
        <input id={id} type="checkbox" {...rest} {...described(id, hint, error)} />
        <label htmlFor={id} className={hideLabel ? 'visually-hidden' : undefined}>{label}</label>
      </div>
      <Hint id={id} hint={hint} error={error} />
    </div>
  );
}

interface FrameProps extends FieldProps { id: string; className: string | undefined; hideLabel: boolean | undefined; children: ReactNode }

function Frame({ id, label, hint, error, hideLabel, className, children }: FrameProps) {
  return (
    <div className={cx(styles.field, className)}>
      <label htmlFor={id} className={hideLabel ? 'visually-hidden' : styles.label}>{label}</label>
      {children}
      <Hint id={id} hint={hint} error={error} />
    </div>
  );
}

function Hint({ id, hint, error }: { id: string; hint: ReactNode; error: string | undefined }) {
  return (error || hint) && <p id={`${id}-hint`} className={error ? styles.error : styles.hint}>{error ?? hint}</p>;
}

function described(id: string, hint: ReactNode, error: string | undefined) {
  return { 'aria-invalid': error ? (true as const) : undefined, 'aria-describedby': error || hint ? `${id}-hint` : undefined };
}
