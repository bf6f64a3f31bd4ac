import { PanelRight, Undo2 } from 'lucide-react';
import { useRef, useState } from 'react';
import { Problem, sentence } from '@/api/problem';
import { useAgents } from '@/api/useAgents';
import { AgentBadge, Button, hueOf, IconButton, ProgressBar } from '@/design';
import { exitHandoff } from '@/thread/actions';
import type { ThreadState } from '@/thread/state';
import styles from './Header.module.css';

interface Props { threadId: string; state: ThreadState; agent: string | undefined; title: string; isInspected: boolean; onInspect: () => void }

/** Who answers, how far a specialist is, and the way back. */
export function Header({ threadId, state, agent, title, isInspected, onInspect }: Props) {
  const { handoff, progress } = state;
  const { face } = useAgents();
  const id = handoff?.to ?? agent;
  const known = id === undefined ? undefined : face(id);
  const name = handoff?.name ?? known?.name;
  const step = progress && handoff?.phase === 'active' ? `Step ${progress.step} of ${progress.total}` : undefined;
  const answers = progress && progress.questions > 0 ? `${progress.answered}/${progress.questions} answers` : undefined;
  return (
    <header role="banner" className={styles.header} data-hue={hueOf(known?.color, id)} data-handoff={handoff?.phase}>
      <h1 className="visually-hidden">{name ? `Conversation with ${name}` : 'Conversation'}</h1>
      <div className={styles.who}>
        {name ? <AgentBadge name={name} color={known?.color} icon={known?.icon} id={id} strong /> : <strong className="truncate">{title}</strong>}
        <div className={styles.detail}>
          {handoff?.phase === 'connecting' ? 'Connecting…' : handoff?.phase === 'returning' ? 'Returning you to the main assistant…' : step ? <><span className="tabular">{step}</span> · {progress?.label}{answers && <> · <span className="tabular">{answers}</span></>}</> : name && title}
        </div>
      </div>
      {step && progress && <div className={styles.progress}><ProgressBar value={progress.step} max={progress.total} label={`${step}: ${progress.label}`} /></div>}
      {handoff && <ExitButton threadId={threadId} />}
      <IconButton icon={PanelRight} label={isInspected ? 'Hide details' : 'Show details'} pressed={isInspected} onClick={onInspect} />
    </header>
  );
}

/** Leaves the specialist. It is never disabled: a click while the first one is being answered is ignored. */
function ExitButton({ threadId }: { threadId: string }) {
  const isLeaving = useRef(false);
  const [problem, setProblem] = useState<string>();
  const leave = async () => {
    if (isLeaving.current) return;
    isLeaving.current = true;
    setProblem(undefined);
    try {
      await exitHandoff(threadId);
    } catch (error) {
      // It has ended in the meantime, which is what was wanted.
      if (!(error instanceof Problem && error.code === 'no_active_handoff')) setProblem(sentence(error));
    } finally {
      isLeaving.current = false;
    }
  };
  return (
    <div className={styles.exit}>
      <Button icon={Undo2} aria-label="Back to main assistant" title="Back to main assistant. Your work is kept as a draft." onClick={() => void leave()}>
        <span>Back<span className={styles.wide}> to main assistant</span></span>
      </Button>
      {problem && <p role="alert" className={styles.problem}>{problem}</p>}
    </div>
  );
}
