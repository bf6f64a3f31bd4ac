import { useQuery } from '@tanstack/react-query';
import { BookOpen, Users, Wand2, type LucideIcon } from 'lucide-react';
import { queries } from '@/api/queries';
import { useChat } from './context';
import styles from './FirstRun.module.css';
import { OfflineNote } from './OfflineNote';
import { UnfinishedWork } from './UnfinishedWork';

const PROMPTS: { icon: LucideIcon; title: string; text: string }[] = [
  { icon: BookOpen, title: 'Ask a question', text: 'How do I configure rate limiting for my agent?' },
  { icon: Wand2, title: 'Work with a specialist', text: 'I want to create a skill that sends Slack alerts' },
  { icon: Users, title: 'Let several agents work together', text: 'Compare what the documentation and the web say about rate limiting' },
];

/** The empty conversation: what can be done here, one click each. */
export function FirstRun() {
  const { mayWrite, send, fill } = useChat();
  const ask = (text: string) => {
    void send({ text });
    // The card that was pressed is gone now; on touch screens the keyboard would cover the answer.
    if (matchMedia('(hover: hover)').matches) fill('');
  };
  const system = useQuery(queries.system());
  return (
    <section className={styles.first} aria-labelledby="first-run">
      <div className={styles.greeting}>
        <h2 id="first-run" className={styles.title}>{mayWrite ? 'How can I help?' : 'Choose a conversation'}</h2>
        <p className="soft">{mayWrite ? 'Ask anything. The main assistant answers, asks other agents, or connects you with a specialist. You always see who is speaking.' : 'Your role can read conversations, but not start them.'}</p>
      </div>
      {mayWrite && <UnfinishedWork />}
      {mayWrite && (
        <ul role="list" className={styles.prompts}>
          {PROMPTS.map(({ icon: Icon, title, text }) => (
            <li key={title}>
              <button type="button" className={styles.prompt} onClick={() => ask(text)}>
                <Icon size={18} aria-hidden className={styles.icon} />
                <span className={styles.promptTitle}>{title}</span>
                <span className={styles.promptText}>{text}</span>
              </button>
            </li>
          ))}
        </ul>
      )}
      {mayWrite && system.data?.offline && <OfflineNote />}
    </section>
  );
}
