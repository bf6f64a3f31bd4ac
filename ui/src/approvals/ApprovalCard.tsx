import { Check, Pencil, ShieldQuestion, X } from 'lucide-react';
import { useId, useState, type ReactNode } from 'react';
import { useMay } from '@/api/useMay';
import { Badge, Button, CheckField, ErrorNote, TextArea, type Tone } from '@/design';
import { visible } from '@/lib/visible';
import { AgentPath } from './AgentPath';
import styles from './Approval.module.css';
import { Call } from './Call';
import { Expiry } from './Expiry';
import type { JsonSchema } from './fields';
import { agentsOf, type Approval, type Risk } from './record';
import type { DecisionState } from './useDecision';
import { useValue } from './useValue';
import { JsonSwitch, ValueForm } from './ValueForm';

export const RISKS: Record<Risk, { tone: Tone; label: string }> = {
  low: { tone: 'neutral', label: 'Low risk' },
  medium: { tone: 'warning', label: 'Medium risk' },
  high: { tone: 'danger', label: 'High risk' },
};

interface Props { approval: Approval; decision: DecisionState; links?: ReactNode }

/** A call of a tool that waits for a person: who wants what, with which arguments, and the decision. */
export function ApprovalCard({ approval, decision, links }: Props) {
  const may = useMay();
  const id = useId();
  const risk = RISKS[approval.risk];
  return (
    <article className={styles.card} aria-labelledby={id}>
      <header className={styles.header}>
        <ShieldQuestion size={18} aria-hidden className={styles.icon} />
        <h2 id={id} className={styles.heading}>Allow <code>{visible(approval.tool)}</code>?</h2>
        <Badge tone={risk.tone}>{risk.label}</Badge>
        <Expiry at={approval.expires_at} />
      </header>
      <div className={styles.who}><AgentPath agents={agentsOf(approval.path)} /></div>
      {may('approval:decide') ? <Decide approval={approval} decision={decision} /> : (
        <>
          <Call approval={approval} />
          <p className="soft">You can read this. The decision needs the permission <code>approval:decide</code>.</p>
        </>
      )}
      {links}
    </article>
  );
}

/** What the person is doing: reading, changing the arguments, or saying why not. */
type Mode = 'read' | 'edit' | 'deny';

function Decide({ approval, decision }: { approval: Approval; decision: DecisionState }) {
  const [mode, setMode] = useState<Mode>('read');
  const [remembers, setRemembers] = useState(false);
  const remember = remembers ? { remember: true } : {};
  const isBusy = decision.pending !== undefined;
  const isSending = (which: 'approve' | 'deny') => decision.pending?.decision === which;
  if (mode === 'edit') return <EditCall approval={approval} decision={decision} remember={remember} onBack={() => setMode('read')} />;
  if (mode === 'deny') return <DenyCall approval={approval} decision={decision} onBack={() => setMode('read')} />;
  return (
    <>
      <Call approval={approval} />
      {decision.problem && <ErrorNote>{decision.problem}</ErrorNote>}
      <div className={styles.actions}>
        <div className={styles.buttons}>
          <Button icon={Check} kind="primary" disabled={isBusy} busy={isSending('approve')} onClick={() => decision.decide({ decision: 'approve', ...remember })}>Approve</Button>
          <Button icon={Pencil} disabled={isBusy} onClick={() => setMode('edit')}>Edit</Button>
          <Button icon={X} disabled={isBusy} onClick={() => setMode('deny')}>Deny</Button>
        </div>
        <CheckField className={styles.remember} label={<>Do not ask again for <code>{visible(approval.tool)}</code> in this conversation</>} checked={remembers} onChange={(event) => setRemembers(event.target.checked)} />
      </div>
    </>
  );
}

interface EditProps { approval: Approval; decision: DecisionState; remember: { remember?: boolean }; onBack: () => void }

/** The arguments as a form. The call is made with what stands there when it is approved. */
function EditCall({ approval, decision, remember, onBack }: EditProps) {
  const editor = useValue(approval.schema as JsonSchema | undefined, approval.arguments);
  const [isSent, setIsSent] = useState(false);
  const errors = isSent && decision.errors ? decision.errors : undefined;
  const approve = () => {
    const now = editor.read();
    if (!now) return;
    setIsSent(true);
    // Other arguments are for this call only.
    decision.decide({ decision: 'approve', ...(now.isChanged ? { arguments: now.value } : remember) });
  };
  return (
    <form className={styles.form} onSubmit={(event) => { event.preventDefault(); approve(); }} noValidate>
      <ValueForm editor={errors ? { ...editor, errors: { ...errors, ...editor.errors } } : editor} label={`Arguments of ${approval.tool}`} />
      {isSent && decision.problem && <ErrorNote>{decision.problem}</ErrorNote>}
      <div className={styles.buttons}>
        <Button type="submit" icon={Check} kind="primary" busy={decision.pending !== undefined}>Approve with changes</Button>
        <Button disabled={decision.pending !== undefined} onClick={onBack}>Back</Button>
        <JsonSwitch editor={editor} />
      </div>
    </form>
  );
}

function DenyCall({ approval, decision, onBack }: Omit<EditProps, 'remember'>) {
  const [reason, setReason] = useState('');
  const deny = () => decision.decide({ decision: 'deny', ...(reason.trim() ? { reason: reason.trim() } : {}) });
  return (
    <form className={styles.form} onSubmit={(event) => { event.preventDefault(); deny(); }}>
      <Call approval={approval} />
      {/* The person has just asked for it, and there is nothing else to do here. */}
      {/* eslint-disable-next-line jsx-a11y/no-autofocus */}
      <TextArea autoFocus label="Reason" hint="The agent reads it and can try something else." placeholder="Optional" dir="auto" maxLength={2000} value={reason} onChange={(event) => setReason(event.target.value)} />
      {decision.problem && <ErrorNote>{decision.problem}</ErrorNote>}
      <div className={styles.buttons}>
        <Button type="submit" icon={X} kind="danger" busy={decision.pending !== undefined}>Deny the call</Button>
        <Button disabled={decision.pending !== undefined} onClick={onBack}>Back</Button>
      </div>
    </form>
  );
}
