import { LoaderCircle, type LucideIcon } from 'lucide-react';
import type { ButtonHTMLAttributes, ReactNode, Ref } from 'react';
import { Link } from 'wouter';
import styles from './Button.module.css';
import { cx } from './cx';

interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  kind?: 'primary' | 'secondary' | 'ghost' | 'danger';
  size?: 'small' | 'medium';
  icon?: LucideIcon;
  /** Shows that the action is running and ignores further clicks. */
  busy?: boolean;
  ref?: Ref<HTMLButtonElement>;
}

export function Button({ kind = 'secondary', size = 'medium', icon: Icon, busy, children, className, disabled, ...rest }: ButtonProps) {
  return (
    <button type="button" {...rest} disabled={disabled || busy} aria-busy={busy || undefined} className={cx(styles.button, styles[kind], styles[size], className)}>
      {busy ? <LoaderCircle className={styles.spin} size={15} aria-hidden /> : Icon && <Icon size={15} aria-hidden />}
      {children}
    </button>
  );
}

interface LinkButtonProps { href: string; kind?: 'primary' | 'secondary'; icon?: LucideIcon; children: ReactNode }

/** A link to another screen that looks like a button. */
export function LinkButton({ href, kind = 'secondary', icon: Icon, children }: LinkButtonProps) {
  return <Link href={href} className={cx(styles.button, styles[kind], styles.medium)}>{Icon && <Icon size={15} aria-hidden />}{children}</Link>;
}

interface IconButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  icon: LucideIcon;
  /** What it does; read by screen readers and shown as the tooltip. */
  label: string;
  size?: 'small' | 'medium';
  pressed?: boolean;
  ref?: Ref<HTMLButtonElement>;
}

export function IconButton({ icon: Icon, label, size = 'medium', pressed, className, ...rest }: IconButtonProps) {
  return (
    <button type="button" {...rest} aria-label={label} title={label} aria-pressed={pressed} className={cx(styles.iconButton, styles[size], className)}>
      <Icon size={size === 'small' ? 14 : 16} aria-hidden />
    </button>
  );
}
