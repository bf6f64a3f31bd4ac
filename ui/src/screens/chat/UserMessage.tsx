import { Pencil, RotateCw, X } from 'lucide-react';
import { memo, useState } from 'react';
import { Badge, Button, CopyButton, IconButton, Time } from '@/design';
import type { MessageItem } from '@/thread/state';
import { Attachments } from './Attachments';
import { useChat } from './context';
import { MessageEditor } from './MessageEditor';
import styles from './Message.module.css';

/** What a person wrote. */
export const UserMessage = memo(function UserMessage({ item, isQueued }: { item: MessageItem; isQueued: boolean }) {
  const { mayWrite, send } = useChat();
  const [isEdited, setIsEdited] = useState(false);
  if (isEdited) {
    const resend = (text: string) => {
      setIsEdited(false);
      void send({ text, attachments: item.attachments, agent: item.agent });
    };
    return <article className={styles.user} aria-label="You"><MessageEditor text={item.text} onSend={resend} onCancel={() => setIsEdited(false)} /></article>;
  }
  return (
    <article className={styles.user} aria-label="You">
      {item.text && <div className={styles.bubble} dir="auto" data-pending={item.status === 'sending' || isQueued || undefined}>{item.text}</div>}
      <Attachments parts={item.attachments} />
      {item.status === 'failed' ? <FailedNote item={item} /> : (
        <div className={styles.userMeta} data-shown={isQueued || undefined}>
          {isQueued ? <Queued runId={item.runId} /> : item.status === 'sending' ? <span className="faint">Sending…</span> : (
            <>
              <CopyButton text={item.text} label="Copy message" />
              {mayWrite && <IconButton icon={Pencil} label="Edit and send again" size="small" onClick={() => setIsEdited(true)} />}
              <span className="faint"><Time at={item.at} /></span>
            </>
          )}
        </div>
      )}
    </article>
  );
});

function Queued({ runId }: { runId: string | undefined }) {
  const { cancel } = useChat();
  return (
    <>
      <Badge title="It is sent to the agent when the current answer is done.">Queued</Badge>
      {runId && <Button kind="ghost" size="small" icon={X} onClick={() => void cancel(runId).catch(() => undefined)}>Remove</Button>}
    </>
  );
}

function FailedNote({ item }: { item: MessageItem }) {
  const { send, forget } = useChat();
  const again = () => void send({ text: item.text, attachments: item.attachments, agent: item.agent, localId: item.id });
  return (
    <div className={styles.failed} role="alert">
      <span>Not sent. {item.problem}</span>
      <Button kind="ghost" size="small" icon={RotateCw} onClick={again}>Retry</Button>
      <Button kind="ghost" size="small" onClick={() => forget(item.id)}>Discard</Button>
    </div>
  );
}
