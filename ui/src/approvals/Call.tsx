import { visible } from '@/lib/visible';
import styles from './Approval.module.css';
import { Arguments } from './Arguments';
import { previewOf, type Approval } from './record';

/** What would be called: the preview, and below it everything that the tool gets. */
export function Call({ approval }: { approval: Approval }) {
  const { heading, fields } = previewOf(approval);
  return (
    <>
      {heading && <p className={styles.preview} dir="auto">{visible(heading)}</p>}
      {fields.length > 0 && <dl className={styles.facts}>{fields.map(({ label, value }) => <div key={label}><dt>{visible(label)}</dt><dd dir="auto">{visible(value)}</dd></div>)}</dl>}
      <Arguments value={approval.arguments} />
    </>
  );
}
