import { CircleAlert, CircleCheck, TriangleAlert } from 'lucide-react';
import { Link } from 'wouter';
import { Card, cx } from '@/design';
import styles from './HealthScreen.module.css';
import type { Verdict } from './verdict';

const ICONS = { ok: CircleCheck, attention: TriangleAlert, failed: CircleAlert };

export function VerdictCard({ verdict: { level, title, issues } }: { verdict: Verdict }) {
  const Icon = ICONS[level];
  return (
    <Card>
      <div className={styles.verdict} role="status">
        <span className={cx(styles.sign, styles[level])} aria-hidden><Icon size={20} /></span>
        <div className={styles.words}>
          <h2>{title}</h2>
          {issues.length > 0 && (
            <ul>{issues.map(({ text, href }) => <li key={text}>{text}{href && <> <Link href={href}>Show</Link></>}</li>)}</ul>
          )}
        </div>
      </div>
    </Card>
  );
}
