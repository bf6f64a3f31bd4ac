import { ListTree, X } from 'lucide-react';
import { useMemo } from 'react';
import type { RunDetail, Steps } from '@/api/types';
import { Button, EmptyState } from '@/design';
import type { StepsState } from '../detail/useSteps';
import type { TreeNode } from '../tree/flatten';
import { groupSteps } from './conversation';
import { StepDetail } from './StepDetail';
import { StepList } from './StepList';
import { StepsGate } from './StepsGate';
import styles from './StepsTab.module.css';

interface StepsTabProps {
  run: RunDetail;
  nodes: TreeNode[];
  /** The session that was chosen in the tree: only its steps are listed. */
  session: string | undefined;
  selected: string | undefined;
  onSelect: (path: string) => void;
  onClearSession: () => void;
}

export function StepsTab({ steps, ...props }: StepsTabProps & { steps: StepsState }) {
  return <StepsGate steps={steps} what="steps">{(known) => <KnownSteps steps={known} {...props} />}</StepsGate>;
}

function KnownSteps({ run, nodes, steps, session, selected, onSelect, onClearSession }: StepsTabProps & { steps: Steps }) {
  const groups = useMemo(() => groupSteps(steps.steps, session ? nodes.filter((node) => node.id === session) : nodes), [steps.steps, nodes, session]);
  const listed = groups.flatMap((group) => group.steps);
  const step = listed.find((other) => other.path === selected) ?? listed.find((other) => other.kind === 'turn') ?? listed[0];
  const filter = session && <Button size="small" kind="ghost" icon={X} onClick={onClearSession}>Show all agents</Button>;
  if (!step) return <EmptyState icon={ListTree} title="No steps yet" action={filter}>Model turns and tool calls appear here as they are recorded.</EmptyState>;
  return (
    <div className={styles.panes}>
      <div className={styles.listPane}>
        {filter}
        <StepList groups={groups} calls={steps.calls} selected={step.path} onSelect={onSelect} />
      </div>
      <StepDetail key={step.path} run={run} step={step} steps={steps} />
    </div>
  );
}
