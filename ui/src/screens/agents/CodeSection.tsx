import { CopyButton } from '@/design';
import styles from './CodeSection.module.css';

/** Text as it is, with a title and a button that copies it. */
export function CodeSection({ title, text, wrap }: { title: string; text: string; wrap?: boolean }) {
  return (
    <section className={styles.block} aria-label={title}>
      <header className={styles.header}><h2>{title}</h2><CopyButton text={text} label={`Copy: ${title}`} /></header>
      {/* A scrolling region has to be reachable by keyboard. */}
      {/* eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <pre className={styles.text} data-wrap={wrap || undefined} tabIndex={0} dir="auto">{text || '(empty)'}</pre>
    </section>
  );
}

export function JsonSection({ title, value }: { title: string; value: unknown }) {
  return <CodeSection title={title} text={JSON.stringify(value, null, 2)} />;
}
