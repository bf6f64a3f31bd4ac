import { AgentBadge } from '@/design';
import styles from './Composer.module.css';
import type { Picker } from './useAgentPicker';

/** The agents that can be asked by name, as a list that the composer's keys move in. */
export function AgentPicker({ picker }: { picker: Picker }) {
  return (
    <div role="listbox" id={picker.id} aria-label="Agents" className={styles.picker}>
      {picker.options.length === 0 && <p className={styles.none}>No agent of that name</p>}
      {picker.options.map((agent, at) => (
        // The focus stays in the text; keys are handled there.
        // eslint-disable-next-line jsx-a11y/click-events-have-key-events
        <div
          key={agent.id} id={`${picker.id}-${agent.id}`} role="option" tabIndex={-1} aria-selected={at === picker.at} className={styles.option}
          ref={at === picker.at ? (element) => element?.scrollIntoView({ block: 'nearest' }) : undefined}
          onMouseDown={(event) => event.preventDefault()} onClick={() => picker.choose(agent.id)}
        >
          <AgentBadge name={agent.display_name} color={agent.badge.color} icon={agent.badge.icon} id={agent.id} />
          <span className={styles.optionText}>{agent.description}</span>
        </div>
      ))}
    </div>
  );
}
