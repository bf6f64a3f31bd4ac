import { Handle, Position, type NodeProps } from '@xyflow/react';
import { CircleAlert, CircleX, LoaderCircle } from 'lucide-react';
import { memo } from 'react';
import { cx, Elapsed, hueOf } from '@/design';
import { duration } from '@/lib/format';
import type { AgentFlowNode } from './flow';
import { stepsText, type Mark } from './overlay';
import { rolesOf } from './roles';
import styles from './Node.module.css';

/** An agent as a card. The card is a button; the canvas opens the panel when it is pressed. */
export const AgentNode = memo(function AgentNode({ data: { node, face, answers, direction, isSelected, isFaded, mark } }: NodeProps<AgentFlowNode>) {
  const [finding] = node.findings;
  const roles = rolesOf(node).join(' · ');
  return (
    <>
      <Handle type="target" position={direction === 'LR' ? Position.Left : Position.Top} className={styles.handle} isConnectable={false} />
      <button
        type="button" data-hue={node.missing ? undefined : hueOf(face.color, node.id)} aria-pressed={isSelected}
        className={cx(styles.node, node.remote && styles.remote, node.missing && styles.missing, finding && styles.broken, isSelected && styles.selected, isFaded && styles.faded, mark && styles.visited, mark?.failed && styles.failed)}
      >
        <span className={styles.mark} aria-hidden>{node.missing ? '?' : face.icon || node.display_name.slice(0, 1).toUpperCase()}</span>
        <span className={styles.text}>
          <span className={styles.name} dir="auto">{node.display_name}</span>
          <span className={styles.roles}>{roles || node.id}</span>
          {mark ? <RunLine mark={mark} />
            : finding ? <span className={styles.finding} title={node.findings.join('\n')}><CircleAlert size={12} aria-hidden /><span className="truncate">{finding}</span></span>
            : <span className={styles.answers}>{answers}</span>}
        </span>
        {mark && <span className={styles.steps} title={`Step ${stepsText(mark)}`}><span className="visually-hidden">Step </span>{stepsText(mark)}</span>}
      </button>
      <Handle type="source" position={direction === 'LR' ? Position.Right : Position.Bottom} className={styles.handle} isConnectable={false} />
    </>
  );
});

function RunLine({ mark }: { mark: Mark }) {
  if (mark.running) return <span className={styles.running}><LoaderCircle size={12} aria-hidden />Working <Elapsed since={mark.startedAt} /></span>;
  if (mark.failed) return <span className={styles.finding} title={mark.errors.join('\n')}><CircleX size={12} aria-hidden /><span className="truncate">Failed after {duration(mark.milliseconds)}</span></span>;
  return <span className={styles.took}>{duration(mark.milliseconds)}</span>;
}
