import { CopyButton } from '@/design';
import styles from './Code.module.css';

/** Text as it is, with a title and a button that copies it. */
export function CodeBlock({ title, text, wrap }: { title: string; text: string; wrap?: boolean }) {
  return (
    <section className={styles.block} aria-label={title}>
      <header className={styles.header}><h2>{title}</h2><CopyButton text={text} label={`Copy: ${title}`} /></header>
      {/* A scrolling region has to be reachable by keyboard. */}
      {/* eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <pre className={styles.text} data-wrap={wrap || undefined} tabIndex={0} dir="auto">{text || '(empty)'}</pre>
    </section>
  );
}

export function JsonBlock({ title, value }: { title: string; value: unknown }) {
  return <CodeBlock title={title} text={JSON.stringify(value, null, 2)} />;
}
