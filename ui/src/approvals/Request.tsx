import { useEffect, useRef, useState, type ReactNode } from 'react';
import { Notice } from '@/design';
import { ApprovalCard } from './ApprovalCard';
import styles from './Approval.module.css';
import { Outcome } from './Outcome';
import { QuestionCard } from './QuestionCard';
import { isOpen, type Approval } from './record';
import { useDecision } from './useDecision';

interface Props {
  approval: Approval;
  /** The record as it is now; undefined if it is gone. */
  onChange: (now: Approval | undefined) => void;
  links?: ReactNode;
}

/** An approval or a question: the card while a decision is awaited, then what became of it. */
export function Request({ approval, onChange, links }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const [note, setNote] = useState<string>();
  const decision = useDecision(approval, (now, isMine) => {
    hadFocus.current = place.current?.contains(document.activeElement) ?? false;
    if (!isMine) setNote(noteOf(now));
    onChange(now);
  });
  const hadFocus = useRef(false);
  const isWaiting = isOpen(approval);
  // The button that was pressed goes away with the card.
  useEffect(() => {
    if (!isWaiting && hadFocus.current) place.current?.focus();
  }, [isWaiting]);
  const Card = approval.kind === 'question' ? QuestionCard : ApprovalCard;
  return (
    <div ref={place} tabIndex={-1} className={styles.request} data-approval={approval.approval_id}>
      {note && <Notice tone="warning"><span role="alert">{note}</span></Notice>}
      {isWaiting ? <Card approval={approval} decision={decision} links={links} /> : <Outcome approval={approval} />}
    </div>
  );
}

function noteOf(now: Approval | undefined): string {
  if (!now) return 'This request does not exist any more.';
  if (now.status === 'expired') return 'The time was over before your decision arrived.';
  if (now.status === 'invalidated') return 'The agent has changed this call; decide about the new one.';
  if (now.status === 'cancelled') return 'The run ended before your decision arrived.';
  return 'Someone else decided this before you.';
}
