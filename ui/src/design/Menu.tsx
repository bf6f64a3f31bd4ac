import type { LucideIcon } from 'lucide-react';
import { useEffect, useRef, useState, type KeyboardEvent } from 'react';
import { IconButton } from './Button';
import { cx } from './cx';
import styles from './Menu.module.css';

export interface MenuItem {
  label: string;
  icon?: LucideIcon;
  danger?: boolean;
  disabled?: boolean;
  onSelect: () => void;
}

/** A button that opens a list of actions. Arrow keys move, Esc closes and gives the focus back. */
export function Menu({ label, icon, items, size = 'small' }: { label: string; icon: LucideIcon; items: MenuItem[]; size?: 'small' | 'medium' }) {
  const [open, setOpen] = useState(false);
  const root = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const menu = useRef<HTMLDivElement>(null);

  useEffect(() => {
    if (!open) return;
    if (menu.current && button.current) placeBelow(menu.current, button.current);
    root.current?.querySelector<HTMLElement>('[role=menuitem]')?.focus();
    const outside = (event: PointerEvent) => root.current?.contains(event.target as Node) || setOpen(false);
    // It does not move along when what is below it scrolls.
    const scrolled = (event: Event) => event.target instanceof Node && event.target.contains(button.current) && setOpen(false);
    document.addEventListener('pointerdown', outside);
    document.addEventListener('scroll', scrolled, true);
    return () => {
      document.removeEventListener('pointerdown', outside);
      document.removeEventListener('scroll', scrolled, true);
    };
  }, [open]);

  const close = () => {
    setOpen(false);
    button.current?.focus();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const entries = [...(root.current?.querySelectorAll<HTMLElement>('[role=menuitem]') ?? [])];
    const at = entries.indexOf(document.activeElement as HTMLElement);
    const next = { ArrowDown: at + 1, ArrowUp: at - 1 + entries.length, Home: 0, End: entries.length - 1 }[event.key];
    if (next !== undefined) entries[next % entries.length]?.focus();
    else if (event.key === 'Escape') close();
    else if (event.key === 'Tab') return setOpen(false);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };

  return (
    <div className={styles.root} ref={root}>
      <IconButton ref={button} icon={icon} label={label} size={size} aria-haspopup="menu" aria-expanded={open} onClick={() => setOpen(!open)} />
      {open && (
        <div ref={menu} popover="manual" role="menu" tabIndex={-1} aria-label={label} className={styles.menu} onKeyDown={onKeyDown}>
          {items.map(({ label, icon: Icon, danger, disabled, onSelect }) => (
            <button key={label} type="button" role="menuitem" tabIndex={-1} disabled={disabled} className={cx(styles.item, danger && styles.danger)} onClick={() => { close(); onSelect(); }}>
              {Icon && <Icon size={15} aria-hidden />}
              {label}
            </button>
          ))}
        </div>
      )}
    </div>
  );
}

/** In the top layer, where no scrolling list cuts it off: below the button and flush with its end, or above it where there is no room below. */
function placeBelow(menu: HTMLElement, button: HTMLElement): void {
  menu.showPopover?.();
  const anchor = button.getBoundingClientRect();
  const { width, height } = menu.getBoundingClientRect();
  const below = anchor.bottom + 4;
  const isRtl = getComputedStyle(button).direction === 'rtl';
  menu.style.top = `${below + height > innerHeight - 8 ? Math.max(8, anchor.top - 4 - height) : below}px`;
  menu.style.left = `${Math.min(Math.max(8, isRtl ? anchor.left : anchor.right - width), innerWidth - width - 8)}px`;
}
