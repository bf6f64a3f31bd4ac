import { Component, type ReactNode } from 'react';
import styles from './Markdown.module.css';

/** A text as it was written. */
export function PlainText({ text }: { text: string }) {
  return (
    <>
      <p className="faint">Shown without formatting, because it is very long or deeply nested.</p>
      <div className={styles.plain}>{text}</div>
    </>
  );
}

/** Shows the text as it was written if its formatted form fails, so that the rest of the screen stays. */
export class PlainOnError extends Component<{ text: string; children: ReactNode }, { hasFailed: boolean }> {
  override state = { hasFailed: false };

  static getDerivedStateFromError() {
    return { hasFailed: true };
  }

  override render() {
    return this.state.hasFailed ? <PlainText text={this.props.text} /> : this.props.children;
  }
}
