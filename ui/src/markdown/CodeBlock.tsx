import type { ExtraProps } from 'react-markdown';
import { CopyButton, cx } from '@/design';
import styles from './CodeBlock.module.css';

type HastNode = NonNullable<ExtraProps['node']>;

/** A fenced block of a Markdown text. */
export function FencedCode({ node }: { node?: HastNode | undefined }) {
  const code = node?.children.find((child): child is HastNode => child.type === 'element' && child.tagName === 'code');
  return <CodeBlock text={textOf(code ?? node).replace(/\n$/, '')} language={languageOf(code)} />;
}

/** Code with its language and a button that copies it. One that `wraps` hides nothing behind its edge. */
export function CodeBlock({ text, language, wraps = false }: { text: string; language?: string | undefined; wraps?: boolean }) {
  return (
    <figure className={styles.block}>
      <figcaption className={styles.bar}>
        <span>{language ?? 'text'}</span>
        <CopyButton text={text} label="Copy code" />
      </figcaption>
      {/* Long lines scroll inside; keyboards have to reach them. */}
      {/* eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <pre className={cx(styles.code, wraps && styles.wrapped)} tabIndex={0} dir="ltr"><code>{text}</code></pre>
    </figure>
  );
}

function languageOf(node: HastNode | undefined): string | undefined {
  const names = node?.properties.className;
  const name = Array.isArray(names) ? names.map(String).find((one) => one.startsWith('language-')) : undefined;
  return name?.slice('language-'.length);
}

function textOf(node: HastNode | undefined): string {
  return (node?.children ?? []).map((child) => (child.type === 'text' ? child.value : child.type === 'element' ? textOf(child) : '')).join('');
}
