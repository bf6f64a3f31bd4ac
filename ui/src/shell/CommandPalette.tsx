import { Search } from 'lucide-react';
import { useEffect, useId, useRef, useState, type KeyboardEvent } from 'react';
import type { Me } from '@/api/types';
import { Dialog } from '@/design';
import styles from './CommandPalette.module.css';
import { groupCommands, type Command } from './commands';
import { PaletteOption } from './PaletteOption';
import { useCommands } from './useCommands';

/** Conversations, agents, screens and actions from the keyboard: a combobox whose list is always open. */
export function CommandPalette({ me, onClose }: { me: Me | undefined; onClose: () => void }) {
  const [query, setQuery] = useState('');
  const [chosen, setChosen] = useState<string>();
  const { commands, isSearching } = useCommands(me, query);
  const groups = groupCommands(commands, query.trim());
  const options = groups.flatMap((group) => group.commands);
  const at = Math.max(0, options.findIndex((command) => command.id === chosen));
  const active = options[at];
  const base = useId();
  const list = useRef<HTMLDivElement>(null);
  const run = (command: Command) => {
    onClose();
    command.run();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.nativeEvent.isComposing) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) setChosen(options[(at + step + options.length) % options.length]?.id);
    else if (event.key === 'Enter' && active) run(active);
    else return;
    event.preventDefault();
  };
  useEffect(() => {
    list.current?.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest' });
  }, [active?.id]);
  return (
    <Dialog kind="palette" title="Search and commands" hideTitle onClose={onClose}>
      <div className={styles.search}>
        <Search size={16} aria-hidden />
        {/* React's autoFocus comes before the dialog is shown; the attribute is read when it is. */}
        <input ref={(input) => input?.setAttribute('autofocus', '')} className={styles.input} role="combobox" aria-label="Search conversations, agents and actions" placeholder="Search conversations, agents and actions…"
          aria-expanded aria-controls={`${base}-list`} aria-autocomplete="list" aria-activedescendant={active ? `${base}-${active.id}` : undefined} autoComplete="off" spellCheck={false}
          value={query} onChange={(event) => { setQuery(event.target.value); setChosen(undefined); }} onKeyDown={onKeyDown} />
        <kbd className={styles.key}>Esc</kbd>
      </div>
      <div ref={list} id={`${base}-list`} role="listbox" aria-label="Results" className={styles.list} aria-busy={isSearching}>
        {groups.map((group) => (
          <div key={group.title} role="group" aria-labelledby={`${base}-group-${group.title}`}>
            <div id={`${base}-group-${group.title}`} className={styles.group}>{group.title}</div>
            {group.commands.map((command) => (
              <PaletteOption key={command.id} id={`${base}-${command.id}`} command={command} query={query.trim()} isActive={command === active} onPoint={() => setChosen(command.id)} onRun={() => run(command)} />
            ))}
          </div>
        ))}
        {options.length === 0 && <p className={styles.nothing}>{isSearching ? 'Searching…' : 'Nothing matches.'}</p>}
      </div>
      <div className={styles.foot} aria-hidden><span><kbd>↑</kbd><kbd>↓</kbd> move</span><span><kbd>↵</kbd> open</span><span><kbd>Esc</kbd> close</span></div>
    </Dialog>
  );
}
