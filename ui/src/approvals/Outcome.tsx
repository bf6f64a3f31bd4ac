import { useQuery } from '@tanstack/react-query';
import { Ban, Check, MessageSquareReply, Timer, X, type LucideIcon } from 'lucide-react';
import { queries } from '@/api/queries';
import { useAgents } from '@/api/useAgents';
import { Time } from '@/design';
import { visible } from '@/lib/visible';
import styles from './Approval.module.css';
import { Arguments } from './Arguments';
import { isSame } from './draft';
import { agentsOf, endOf, type Approval, type ApprovalStatus } from './record';

const ENDS: Record<Exclude<ApprovalStatus, 'pending'>, { icon: LucideIcon; tone: string }> = {
  approved: { icon: Check, tone: 'success' },
  denied: { icon: X, tone: 'danger' },
  answered: { icon: MessageSquareReply, tone: 'success' },
  expired: { icon: Timer, tone: 'neutral' },
  cancelled: { icon: Ban, tone: 'neutral' },
  invalidated: { icon: Ban, tone: 'neutral' },
};

/** What became of an approval or a question, in one line that opens. */
export function Outcome({ approval }: { approval: Approval }) {
  const { face } = useAgents();
  if (approval.status === 'pending') return null;
  const { icon: Icon, tone } = ENDS[approval.status];
  return (
    <details className={styles.outcome} data-tone={tone}>
      <summary>
        <Icon size={15} aria-hidden className={styles.outcomeIcon} />
        <span className={styles.outcomeText}><Sentence approval={approval} /></span>
        <span className={styles.outcomeTime}><Time at={endOf(approval)} /></span>
      </summary>
      <div className={styles.outcomeBody}>
        <p className="soft">Asked by {agentsOf(approval.path).map((agent) => face(agent).name).join(' › ')}</p>
        {approval.kind === 'question' ? <p dir="auto">{visible(approval.preview.heading)}</p> : <Arguments value={approval.edited ?? approval.arguments} />}
        {approval.kind === 'tool' && isEdited(approval) && <><p className="soft">Asked with</p><Arguments value={approval.arguments} /></>}
      </div>
    </details>
  );
}

function Sentence({ approval }: { approval: Approval }) {
  const { data: me } = useQuery(queries.me());
  const by = approval.decided_by === undefined ? '' : ` by ${approval.decided_by === me?.user_id ? 'you' : visible(approval.decided_by)}`;
  const tool = <code>{visible(approval.tool)}</code>;
  const isQuestion = approval.kind === 'question';
  switch (approval.status) {
    case 'answered': return <>Answered{by}: <span dir="auto">{visible(answerText(approval.answer))}</span></>;
    case 'approved': return <>{tool} was approved{by}{isEdited(approval) && ' with changes'}{approval.remember && ', for the rest of this conversation'}</>;
    case 'denied': return <>{isQuestion ? 'The question' : tool} was {isQuestion ? 'declined' : 'denied'}{by}{approval.reason && <>: <span dir="auto">{visible(approval.reason)}</span></>}</>;
    case 'expired': return isQuestion ? <>The question was not answered in time</> : <>{tool} was not decided in time and was not called</>;
    case 'invalidated': return <>{tool} was withdrawn: the call has changed</>;
    default: return <>{isQuestion ? 'The question' : tool} was withdrawn: its result is no longer needed, or the run has ended</>;
  }
}

function isEdited({ arguments: asked, edited: decided }: Approval): boolean {
  return decided !== undefined && decided !== null && !isSame(asked, decided);
}

function answerText(answer: unknown): string {
  return typeof answer === 'string' ? answer : JSON.stringify(answer);
}
