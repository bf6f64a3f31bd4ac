import { useEffect, useRef, useState, type KeyboardEvent, type RefObject } from 'react';
import { partOf } from '@/thread/actions';
import type { Chat } from './context';
import { drafts } from './storage';
import { mentionAt, useAgentPicker, type Picker } from './useAgentPicker';
import { useUploads, type Uploads } from './useUploads';

export interface ComposerState {
  text: string;
  agent: string | undefined;
  setAgent: (agent: string | undefined) => void;
  area: RefObject<HTMLTextAreaElement | null>;
  uploads: Uploads;
  picker: Picker;
  canSend: boolean;
  type: (text: string, caret: number) => void;
  fill: (text: string, agent?: string) => void;
  submit: () => void;
  onKeyDown: (event: KeyboardEvent<HTMLTextAreaElement>) => void;
}

/** The message that is being written. Its text survives a reload of this tab. */
export function useComposer(threadId: string, isNew: boolean, send: Chat['send']): ComposerState {
  const draftKey = isNew ? 'new' : threadId;
  const [text, setText] = useState(() => drafts.read(draftKey));
  const [agent, setAgent] = useState<string>();
  const [query, setQuery] = useState<string>();
  const area = useRef<HTMLTextAreaElement>(null);
  const uploads = useUploads(threadId);
  useEffect(() => drafts.write(draftKey, text), [draftKey, text]);
  useEffect(() => {
    if (isNew && document.activeElement === document.body && matchMedia('(hover: hover)').matches) area.current?.focus();
    // Only when the conversation is opened.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, []);

  const picker = useAgentPicker({
    query,
    onChoose: (chosen) => {
      const caret = area.current?.selectionStart ?? text.length;
      const start = caret - (query?.length ?? 0) - 1;
      const isTyped = mentionAt(text, caret) !== undefined;
      if (isTyped) setText(text.slice(0, Math.max(0, start)) + text.slice(caret));
      setAgent(chosen);
      setQuery(undefined);
      area.current?.focus();
    },
    onClose: () => setQuery(undefined),
    onToggle: () => {
      area.current?.focus();
      setQuery(query === undefined ? '' : undefined);
    },
  });
  const isReady = uploads.items.every(({ status }) => status === 'done');
  const canSend = isReady && (text.trim() !== '' || uploads.items.length > 0);
  const submit = () => {
    if (!canSend) return;
    const attachments = uploads.items.flatMap(({ artifact }) => (artifact ? [partOf(artifact)] : []));
    setText('');
    setAgent(undefined);
    setQuery(undefined);
    uploads.clear();
    void send({ text: text.trim(), attachments, agent });
  };
  return {
    text, agent, setAgent, area, uploads, picker, canSend, submit,
    type(next, caret) {
      setText(next);
      setQuery(mentionAt(next, caret));
    },
    fill(next, chosen) {
      setText(next);
      setAgent(chosen);
      area.current?.focus();
    },
    onKeyDown(event) {
      // Enter that ends the composition of a character belongs to the input method.
      if (event.nativeEvent.isComposing || picker.onKey(event)) return;
      if (event.key === 'Enter' && !event.shiftKey) {
        event.preventDefault();
        submit();
      }
    },
  };
}
