import { ArrowUp, AtSign, Paperclip, Square, X } from 'lucide-react';
import { useRef, type ClipboardEvent } from 'react';
import { useAgents } from '@/api/useAgents';
import { AgentBadge, IconButton } from '@/design';
import { AgentPicker } from './AgentPicker';
import styles from './Composer.module.css';
import { useChat } from './context';
import { UploadChips } from './UploadChips';
import { useAutosize } from './useAutosize';
import type { ComposerState } from './useComposer';

interface Props { composer: ComposerState; activeRun: string | undefined; onStop: () => void; placeholder: string }

/** Where a person writes. Enter sends; while an answer is being written the message waits behind it. */
export function Composer({ composer, activeRun, onStop, placeholder }: Props) {
  const { threadId } = useChat();
  const { face } = useAgents();
  const { text, agent, uploads, picker, area } = composer;
  const input = useRef<HTMLInputElement>(null);
  useAutosize(area, text);
  const onPaste = (event: ClipboardEvent) => {
    const files = [...event.clipboardData.files];
    if (files.length === 0) return;
    event.preventDefault();
    uploads.add(files);
  };
  const isUploading = uploads.items.some(({ status }) => status === 'uploading');
  return (
    <div className={styles.wrap}>
      <div className={styles.box} data-over={uploads.isOver || undefined} {...uploads.dropTarget}>
        {picker.isOpen && <AgentPicker picker={picker} />}
        {(agent || uploads.items.length > 0) && (
          <div className={styles.chips}>
            {agent && <span className={styles.agent}><AgentBadge {...face(agent)} /><IconButton icon={X} label={`Do not ask ${face(agent).name} in particular`} size="small" onClick={() => composer.setAgent(undefined)} /></span>}
            <UploadChips items={uploads.items} onRemove={uploads.remove} onRetry={uploads.retry} />
          </div>
        )}
        <textarea
          ref={area} className={styles.text} rows={1} dir="auto" value={text} aria-label="Message" aria-describedby={`${threadId}-hint`} placeholder={placeholder}
          aria-autocomplete="list" aria-haspopup="listbox" aria-controls={picker.isOpen ? picker.id : undefined} aria-activedescendant={picker.isOpen ? picker.activeId : undefined}
          onChange={(event) => composer.type(event.target.value, event.target.selectionStart)} onKeyDown={composer.onKeyDown} onPaste={onPaste} onBlur={picker.close}
        />
        <div className={styles.bar}>
          <IconButton icon={Paperclip} label="Attach files" onClick={() => input.current?.click()} />
          <IconButton icon={AtSign} label="Choose an agent" onMouseDown={(event) => event.preventDefault()} onClick={picker.toggle} />
          <input ref={input} type="file" multiple hidden aria-label="Files" onChange={(event) => { uploads.add([...(event.target.files ?? [])]); event.target.value = ''; }} />
          <span className={styles.space} />
          {activeRun && <IconButton icon={Square} label="Stop (Esc)" className={styles.stop} onClick={onStop} />}
          <IconButton icon={ArrowUp} label={isUploading ? 'Send message when the files are uploaded' : activeRun ? 'Send message: it waits for the current answer' : 'Send message'} className={styles.send} disabled={!composer.canSend} onClick={composer.submit} />
        </div>
      </div>
      <p className={styles.hint} id={`${threadId}-hint`}><kbd>Enter</kbd> to send · <kbd>Shift</kbd>+<kbd>Enter</kbd> for a new line · <kbd>@</kbd> to choose an agent</p>
    </div>
  );
}
