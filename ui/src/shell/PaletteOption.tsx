import { cx, hueOf } from '@/design';
import { fuzzyMatch } from '@/lib/fuzzy';
import styles from './CommandPalette.module.css';
import type { Command } from './commands';

interface PaletteOptionProps { id: string; command: Command; query: string; isActive: boolean; onPoint: () => void; onRun: () => void }

export function PaletteOption({ id, command, query, isActive, onPoint, onRun }: PaletteOptionProps) {
  const { title, icon: Icon, face, detail, shortcut } = command;
  return (
    // The field above has the focus and operates the options by keyboard.
    // eslint-disable-next-line jsx-a11y/click-events-have-key-events, jsx-a11y/interactive-supports-focus
    <div id={id} role="option" aria-selected={isActive} className={cx(styles.option, isActive && styles.active)} onPointerMove={onPoint} onClick={onRun}>
      <span className={styles.icon} data-hue={face && hueOf(face.color, face.id)}><Icon size={15} aria-hidden /></span>
      <span className="truncate" dir="auto"><Marked text={title} query={query} /></span>
      {detail && <span className={styles.detail}>{detail}</span>}
      {shortcut && <kbd className={styles.key}>{shortcut}</kbd>}
    </div>
  );
}

/** The characters that match are emphasised. */
function Marked({ text, query }: { text: string; query: string }) {
  const positions = query ? fuzzyMatch(query, text)?.positions : undefined;
  if (!positions?.length) return text;
  const marked = new Set(positions);
  const parts: { text: string; isMarked: boolean }[] = [];
  for (const [at, char] of text.split('').entries()) {
    const last = parts.at(-1);
    if (last?.isMarked === marked.has(at)) last.text += char;
    else parts.push({ text: char, isMarked: marked.has(at) });
  }
  return parts.map((part, at) => (part.isMarked ? <mark key={at} className={styles.mark}>{part.text}</mark> : part.text));
}
