import { useState } from 'react';
import { cx } from '@/design';
import { CodeBlock } from '@/markdown/CodeBlock';
import styles from './FirstRun.module.css';

const CONFIG = `[models]
default = "anthropic/claude-sonnet-4-5"   # or "openai/gpt-5-mini", "gemini/…", "ollama/…"`;
const KEY = 'export ANTHROPIC_API_KEY=…   # or OPENAI_API_KEY, GEMINI_API_KEY';

/** Without a model the built-in rules answer; this says so and how to change it. */
export function OfflineNote() {
  const [isOpen, setIsOpen] = useState(false);
  return (
    <div className={styles.offline}>
      <p>
        No model is configured: answers come from built-in rules.{' '}
        <button type="button" className={styles.link} aria-expanded={isOpen} onClick={() => setIsOpen(!isOpen)}>How to connect a model</button>
      </p>
      <div className={cx(styles.steps)} hidden={!isOpen}>
        <p>1. Name a model in <code>baton.toml</code>:</p>
        <CodeBlock text={CONFIG} language="baton.toml" />
        <p>2. Set the key of its provider and start the server again:</p>
        <CodeBlock text={KEY} language="shell" />
      </div>
    </div>
  );
}
