import { Bot } from 'lucide-react';
import { EmptyState } from '@/design';
import styles from './Agent.module.css';
import { CodeSection } from './CodeSection';

const SMALLEST = `---
description: Greets people and answers small talk.
---
You are friendly and brief.
`;

/** What to do when there are no agents: the smallest file that makes one. */
export function FirstAgent() {
  return (
    <EmptyState icon={Bot} title="There are no agents yet" action={<div className={styles.example}><CodeSection title="agents/greeter.md" text={SMALLEST} /></div>}>
      An agent is a Markdown file in <code>agents/</code>. Save this one, and it appears here.
    </EmptyState>
  );
}
