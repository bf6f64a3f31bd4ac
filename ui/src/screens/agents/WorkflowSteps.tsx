import { CornerDownLeft, MessageCircleQuestionMark, Play, ShieldQuestionMark, Split } from 'lucide-react';
import { jumps, words, type WorkflowState } from './definition';
import styles from './Workflow.module.css';

/** The steps of a workflow, from top to bottom. */
export function WorkflowSteps({ states }: { states: WorkflowState[] }) {
  return (
    <ol className={styles.steps}>
      {states.map((state, at) => (
        <li key={state.name} className={styles.step}>
          <span className={styles.number} aria-hidden>{at + 1}</span>
          <div className={styles.body}>
            <h3>{words(state.name)} <code className={styles.name}>{state.name}</code></h3>
            {state.collect?.map((item) => (
              <p key={item.key} className={styles.detail}>
                <MessageCircleQuestionMark size={14} aria-hidden />
                <span><code>{item.key}</code>{item.required === false && <span className="faint"> optional</span>} <span dir="auto">{item.ask}</span>{item.choices && <span className="faint"> ({item.choices.join(', ')})</span>}</span>
              </p>
            ))}
            {state.run && <p className={styles.detail}><Play size={14} aria-hidden /><span>Runs <code>{state.run}</code></span></p>}
            {state.confirm && <p className={styles.detail}><ShieldQuestionMark size={14} aria-hidden /><span>Asks for a yes: <span dir="auto">“{state.confirm}”</span></span></p>}
            {state.on_failure && <p className={styles.detail}><CornerDownLeft size={14} aria-hidden /><span>On failure back to {words(state.on_failure)}</span></p>}
            {jumps(states, at).map((name) => <p key={name} className={styles.detail}><Split size={14} aria-hidden /><span>Can go on with {words(name)}</span></p>)}
          </div>
        </li>
      ))}
    </ol>
  );
}
