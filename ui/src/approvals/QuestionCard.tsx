import { CircleQuestionMark, CornerDownLeft } from 'lucide-react';
import { useId, useState, type ReactNode } from 'react';
import { useMay } from '@/api/useMay';
import { Button, ErrorNote, TextArea } from '@/design';
import { visible } from '@/lib/visible';
import { AgentPath } from './AgentPath';
import styles from './Approval.module.css';
import { Expiry } from './Expiry';
import { agentsOf, formOf, type Approval } from './record';
import type { DecisionState } from './useDecision';
import { useValue } from './useValue';
import { JsonSwitch, ValueForm } from './ValueForm';

interface Props { approval: Approval; decision: DecisionState; links?: ReactNode }

/** A question of an agent: choices as buttons, a form, or a text. */
export function QuestionCard({ approval, decision, links }: Props) {
  const may = useMay();
  const id = useId();
  const Answer = formOf(approval) ? FormAnswer : TextAnswer;
  return (
    <article className={styles.card} aria-labelledby={id} data-kind="question">
      <header className={styles.header}>
        <CircleQuestionMark size={18} aria-hidden className={styles.icon} />
        <div className={styles.title}><AgentPath agents={agentsOf(approval.path)} /><span className="soft">asks</span></div>
        <Expiry at={approval.expires_at} />
      </header>
      <h2 id={id} className={styles.question} dir="auto">{visible(approval.preview.heading)}</h2>
      {may('approval:decide') ? <Answer approval={approval} decision={decision} /> : <p className="soft">You can read this. The answer needs the permission <code>approval:decide</code>.</p>}
      {links}
    </article>
  );
}

function TextAnswer({ approval, decision }: Props) {
  const [text, setText] = useState('');
  const choices = approval.choices ?? [];
  const isBusy = decision.pending !== undefined;
  const answer = (answer: string) => answer.trim() && decision.decide({ decision: 'approve', answer: answer.trim() });
  return (
    <>
      {choices.length > 0 && (
        <div className={styles.choices} role="group" aria-label="Choices">
          {choices.map((choice) => (
            <Button key={choice} className={styles.choice} disabled={isBusy} busy={decision.pending?.answer === choice} onClick={() => answer(choice)}><span dir="auto">{visible(choice)}</span></Button>
          ))}
        </div>
      )}
      {decision.problem && <ErrorNote>{decision.problem}</ErrorNote>}
      <form className={styles.typed} onSubmit={(event) => { event.preventDefault(); answer(text); }}>
        <TextArea
          label={choices.length > 0 ? 'Another answer' : 'Your answer'} hideLabel rows={1} dir="auto" className={styles.answer} value={text} placeholder={choices.length > 0 ? 'Or type another answer' : 'Type your answer'}
          onChange={(event) => setText(event.target.value)}
          onKeyDown={(event) => {
            if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return;
            event.preventDefault();
            answer(text);
          }}
        />
        <Button type="submit" icon={CornerDownLeft} kind={choices.length > 0 ? 'secondary' : 'primary'} disabled={text.trim() === ''} busy={isBusy && decision.pending?.answer === text.trim()}>Answer</Button>
      </form>
    </>
  );
}

function FormAnswer({ approval, decision }: Props) {
  const editor = useValue(formOf(approval), undefined);
  const send = () => {
    const now = editor.read();
    if (now) decision.decide({ decision: 'approve', answer: now.value });
  };
  return (
    <form className={styles.form} onSubmit={(event) => { event.preventDefault(); send(); }} noValidate>
      <ValueForm editor={decision.errors ? { ...editor, errors: { ...decision.errors, ...editor.errors } } : editor} label="Your answer" />
      {decision.problem && <ErrorNote>{decision.problem}</ErrorNote>}
      <div className={styles.buttons}><Button type="submit" icon={CornerDownLeft} kind="primary" busy={decision.pending !== undefined}>Answer</Button><JsonSwitch editor={editor} /></div>
    </form>
  );
}
