import styles from './Logo.module.css';

/** The mark of `public/favicon.svg`, in the colours of the theme. */
export function Logo({ size = 24 }: { size?: number }) {
  return (
    <svg viewBox="0 0 32 32" width={size} height={size} className={styles.logo} aria-hidden>
      <rect width="32" height="32" rx="8" className={styles.ground} />
      <g transform="rotate(-38 16 16)">
        <rect x="4" y="12.5" width="24" height="7" rx="3.5" className={styles.baton} />
        <rect x="9" y="12.5" width="3" height="7" className={styles.band} />
        <rect x="20" y="12.5" width="3" height="7" className={styles.band} />
      </g>
    </svg>
  );
}
