import { Monitor, Moon, Sun, type LucideIcon } from 'lucide-react';
import { setTheme, useTheme, type Theme } from './theme';
import styles from './ThemeSwitch.module.css';

export const THEMES: { theme: Theme; label: string; icon: LucideIcon }[] = [
  { theme: 'system', label: 'System theme', icon: Monitor },
  { theme: 'light', label: 'Light theme', icon: Sun },
  { theme: 'dark', label: 'Dark theme', icon: Moon },
];

export function ThemeSwitch() {
  const current = useTheme();
  return (
    <fieldset className={styles.switch}>
      <legend className="visually-hidden">Theme</legend>
      {THEMES.map(({ theme, label, icon: Icon }) => (
        <label key={theme} className={styles.option} title={label}>
          <input type="radio" name="theme" className="visually-hidden" checked={current === theme} onChange={() => setTheme(theme)} aria-label={label} />
          <Icon size={13} aria-hidden />
        </label>
      ))}
    </fieldset>
  );
}
