import { useMemo } from 'react';
import type { RunDetail, Steps } from '@/api/types';
import { Button, EmptyState, ErrorNote, Notice } from '@/design';
import { useNow } from '@/lib/useNow';
import { Hourglass } from 'lucide-react';
import { isOver } from '@/run/status';
import type { StepsState } from '../detail/useSteps';
import type { TreeNode } from '../tree/flatten';
import { domainOf } from './scale';
import { timelineRows, withQueue } from './segments';
import { Timeline } from './Timeline';

interface TimelineTabProps { run: RunDetail; nodes: TreeNode[]; steps: StepsState; selected: string | undefined; onStep: (path: string) => void }

const NONE: Steps = { steps: [], calls: [], hops: [] };

export function TimelineTab({ run, nodes, steps, selected, onStep }: TimelineTabProps) {
  const isLive = !isOver(run.status);
  const now = useNow(isLive ? 1_000 : 0);
  const { start, end } = domainOf(run, now);
  const domain = useMemo(() => ({ start, end }), [start, end]);
  const known = steps.state === 'ready' ? steps.steps : NONE;
  const isDetailed = steps.state === 'ready';
  const rows = useMemo(() => {
    // Without the calls every gap would be shown as a wait.
    const shortest = isDetailed ? Math.max(5, (end - start) / 100) : Infinity;
    return withQueue(timelineRows(nodes, known.calls, known.steps, shortest), run.created_at, Math.max(5, (end - start) / 100));
  }, [nodes, known, isDetailed, start, end, run.created_at]);
  if (rows.length === 0) return <EmptyState icon={Hourglass} title={isLive ? 'Waiting for a worker' : 'Nothing was done'}>{isLive ? 'The timeline appears as soon as the first agent starts.' : 'This run ended before an agent started.'}</EmptyState>;
  return (
    <>
      {steps.state === 'denied' && <Notice>Model and tool calls are not shown. {steps.reason}</Notice>}
      {steps.state === 'failed' && <ErrorNote action={<Button size="small" onClick={steps.retry}>Retry</Button>}>Model and tool calls could not be loaded. {steps.reason}</ErrorNote>}
      <Timeline rows={rows} domain={domain} now={isLive ? now : undefined} selected={selected} onStep={isDetailed ? onStep : undefined} />
    </>
  );
}
