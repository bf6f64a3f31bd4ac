import { Pencil, RotateCw, X } from 'lucide-react';
import { memo, useState } from 'react';
import { sentence } from '@/api/problem';
import { Badge, Button, CopyButton, IconButton, Time } from '@/design';
import type { MessageItem } from '@/thread/state';
import { Attachments } from './Attachments';
import { useChat } from './context';
import { MessageEditor } from './MessageEditor';
import styles from './Message.module.css';

/** What a person wrote. */
export const UserMessage = memo(function UserMessage({ item, isQueued, isRemoved }: { item: MessageItem; isQueued: boolean; isRemoved: boolean }) {
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
      {item.text && <div className={styles.bubble} dir="auto" data-pending={item.status === 'sending' || isQueued || isRemoved || undefined}>{item.text}</div>}
      <Attachments parts={item.attachments} />
      {item.status === 'failed' ? <FailedNote item={item} /> : (
        <div className={styles.userMeta} data-shown={isQueued || isRemoved || undefined}>
          {isQueued ? <Queued runId={item.runId} /> : item.status === 'sending' ? <span className="faint">Sending…</span> : (
            <>
              <CopyButton text={item.text} label="Copy message" />
              {mayWrite && <IconButton icon={Pencil} label="Edit and send again" size="small" onClick={() => setIsEdited(true)} />}
              {isRemoved && <Badge title="It was taken out of the queue before it was answered.">Removed</Badge>}
              <span className="faint"><Time at={item.at} /></span>
            </>
          )}
        </div>
      )}
    </article>
  );
});

function Queued({ runId }: { runId: string | undefined }) {
  const { remove } = useChat();
  const [problem, setProblem] = useState<string>();
  const leave = (runId: string) => remove(runId).catch((error: unknown) => setProblem(sentence(error)));
  return (
    <>
      {problem && <span role="alert" className={styles.problem}>{problem}</span>}
      <Badge title="It is sent to the agent when the current answer is done.">Queued</Badge>
      {runId && <Button kind="ghost" size="small" icon={X} onClick={() => void leave(runId)}>Remove</Button>}
    </>
  );
}

function FailedNote({ item }: { item: MessageItem }) {
  const { send, discard } = useChat();
  const again = () => void send({ text: item.text, attachments: item.attachments, agent: item.agent, localId: item.id });
  return (
    <div className={styles.failed} role="alert">
      <span>Not sent. {item.problem}</span>
      <Button kind="ghost" size="small" icon={RotateCw} onClick={again}>Retry</Button>
      <Button kind="ghost" size="small" onClick={() => discard(item.id)}>Discard</Button>
    </div>
  );
}
