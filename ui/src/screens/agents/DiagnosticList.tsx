import { CircleX, Info, TriangleAlert, type LucideIcon } from 'lucide-react';
import type { Diagnostic } from '@/api/types';
import { CopyButton, cx } from '@/design';
import styles from './Diagnostic.module.css';
import { Excerpt } from './Excerpt';
import { inlineCode } from './inlineCode';

const SEVERITIES: Record<Diagnostic['severity'], { icon: LucideIcon; word: string; order: number }> = {
  error: { icon: CircleX, word: 'Error', order: 0 },
  warning: { icon: TriangleAlert, word: 'Warning', order: 1 },
  note: { icon: Info, word: 'Note', order: 2 },
};

/** Findings in agent files, the worst first, each with its place, its source and a way out. */
export function DiagnosticList({ diagnostics }: { diagnostics: Diagnostic[] }) {
  const sorted = [...diagnostics].sort((one, other) => SEVERITIES[one.severity].order - SEVERITIES[other.severity].order);
  return (
    <ul className={styles.list}>
      {sorted.map((diagnostic, at) => <li key={at}><Finding diagnostic={diagnostic} /></li>)}
    </ul>
  );
}

function Finding({ diagnostic }: { diagnostic: Diagnostic }) {
  const { icon: Icon, word } = SEVERITIES[diagnostic.severity];
  const place = `${diagnostic.file}:${diagnostic.line}:${diagnostic.column}`;
  return (
    <article className={cx(styles.finding, styles[diagnostic.severity])}>
      <header className={styles.header}>
        <p className={styles.kind}><Icon size={15} aria-hidden />{word}<code className={styles.rule}>{diagnostic.rule}</code></p>
        <h3 className={styles.message}>{inlineCode(diagnostic.message)}</h3>
      </header>
      <div className={styles.source}>
        <p className={styles.place}><code className="truncate">{place}</code><CopyButton text={place} label="Copy the place" /></p>
        {diagnostic.excerpt && diagnostic.excerpt.length > 0 && <Excerpt lines={diagnostic.excerpt} place={diagnostic} />}
      </div>
      {diagnostic.help && <p className={styles.help}><strong>Help:</strong> {inlineCode(diagnostic.help)}</p>}
      {diagnostic.related?.map((related, at) => (
        <p key={at} className={styles.help}><strong>See:</strong> {inlineCode(related.message)} <code>{related.file}:{related.line}:{related.column}</code></p>
      ))}
    </article>
  );
}
