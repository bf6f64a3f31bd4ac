import { useId, type InputHTMLAttributes, type ReactNode, type Ref, type SelectHTMLAttributes } from 'react';
import { cx } from './cx';
import styles from './Field.module.css';

interface FieldProps { label: string; hint?: ReactNode; error?: string | undefined; hideLabel?: boolean }

export function TextField({ label, hint, error, hideLabel, className, ...rest }: FieldProps & InputHTMLAttributes<HTMLInputElement> & { ref?: Ref<HTMLInputElement> }) {
  const id = useId();
  return (
    <div className={cx(styles.field, className)}>
      <label htmlFor={id} className={hideLabel ? 'visually-hidden' : styles.label}>{label}</label>
      <input id={id} {...rest} className={styles.input} aria-invalid={error ? true : undefined} aria-describedby={error || hint ? `${id}-hint` : undefined} />
      {(error || hint) && <p id={`${id}-hint`} className={error ? styles.error : styles.hint}>{error ?? hint}</p>}
    </div>
  );
}

export function SelectField({ label, hideLabel, children, className, ...rest }: FieldProps & SelectHTMLAttributes<HTMLSelectElement>) {
  const id = useId();
  return (
    <div className={cx(styles.field, className)}>
      <label htmlFor={id} className={hideLabel ? 'visually-hidden' : styles.label}>{label}</label>
      <select id={id} {...rest} className={styles.input}>{children}</select>
    </div>
  );
}
