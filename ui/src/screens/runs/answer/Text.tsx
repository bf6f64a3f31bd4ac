import { Markdown } from '@/markdown/Markdown';
import styles from './AnswerTab.module.css';

/** The text of an answer, as the chat shows it. */
export function Text({ text }: { text: string }) {
  return <div className={styles.text}><Markdown text={text} /></div>;
}
