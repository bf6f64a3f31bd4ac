import type { Schemas } from '@/api/client';
import { cx } from '@/design';
import styles from './Diagnostic.module.css';
import { marked } from './marked';

/** Source lines with their numbers; the offending part is marked. */
export function Excerpt({ lines, place }: { lines: Schemas['LineView'][]; place: Schemas['PlaceView'] }) {
  const digits = String(lines.at(-1)?.line ?? 0).length;
  return (
    // Long lines scroll, and a scrolling region has to be reachable by keyboard.
    // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <div className={styles.excerpt} role="region" aria-label={`Lines of ${place.file}`} tabIndex={0}>
      <div className={styles.lines}>
        {lines.map(({ line, text }) => {
          const [before, part, after] = marked(text, line, place);
          const hit = line >= place.line && line <= place.end_line;
          return (
            <div key={line} className={cx(styles.line, hit && styles.hit)}>
              <span className={styles.number} style={{ minWidth: `${digits + 2}ch` }}>{hit && <span className="visually-hidden">Found in line </span>}{line}</span>
              <code className={styles.code} dir="ltr">{before}{part && <mark className={styles.mark}>{part}</mark>}{after}</code>
            </div>
          );
        })}
      </div>
    </div>
  );
}
