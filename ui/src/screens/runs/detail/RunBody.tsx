import { PanelLeftClose, PanelLeftOpen } from 'lucide-react';
import { useMemo, useState } from 'react';
import type { RunDetail } from '@/api/types';
import { cx, IconButton, Tabs, type Tab } from '@/design';
import { AnswerTab } from '../answer/AnswerTab';
import { EventsTab } from '../events/EventsTab';
import { HopsTab } from '../steps/HopsTab';
import { StepsTab } from '../steps/StepsTab';
import { TimelineTab } from '../timeline/TimelineTab';
import { flatten } from '../tree/flatten';
import { OperationTree } from '../tree/OperationTree';
import styles from './RunBody.module.css';
import { useRunView } from './useRunView';
import { useSteps } from './useSteps';

/** The operation tree beside what is looked at. */
export function RunBody({ run }: { run: RunDetail }) {
  const [view, change] = useRunView();
  const [isTreeShown, setTreeShown] = useState(() => innerWidth > 900);
  const steps = useSteps(run);
  const nodes = useMemo(() => flatten(run.sessions), [run.sessions]);
  const known = steps.state === 'ready' ? steps.steps : undefined;
  const tabs: Tab[] = [
    { id: 'timeline', label: 'Timeline', content: () => <TimelineTab run={run} nodes={nodes} steps={steps} selected={view.session} onStep={(step) => change({ tab: 'steps', step, session: undefined })} /> },
    { id: 'steps', label: 'Steps', ...(known && { count: known.steps.length }), content: () => <StepsTab run={run} nodes={nodes} steps={steps} session={view.session} selected={view.step} onSelect={(step) => change({ step })} onClearSession={() => change({ session: undefined })} /> },
    { id: 'hops', label: 'Hops', ...(known && { count: known.hops.length }), content: () => <HopsTab steps={steps} /> },
    { id: 'events', label: 'Events', content: () => <EventsTab runId={run.run_id} /> },
    { id: 'answer', label: 'Answer', content: () => <AnswerTab run={run} /> },
  ];
  const toggle = <IconButton icon={isTreeShown ? PanelLeftClose : PanelLeftOpen} label={isTreeShown ? 'Hide the tree' : 'Show the tree'} size="small" onClick={() => setTreeShown(!isTreeShown)} />;
  return (
    <div className={styles.container}>
      <div className={cx(styles.body, !isTreeShown && styles.single)}>
        <section className={styles.tree} aria-label="Operation tree">
          <header className={styles.treeHeader}>
            <h2>Agents <span className={styles.count}>{nodes.length}</span></h2>
            {toggle}
          </header>
          {isTreeShown && <OperationTree sessions={run.sessions} selected={view.session} onSelect={(session) => change({ session: session === view.session ? undefined : session, step: undefined })} />}
        </section>
        <div className={styles.tabs}>
          <Tabs label="Details of the run" tabs={tabs} active={view.tab} onChange={(tab) => change({ tab: tab === 'timeline' ? undefined : tab })} />
        </div>
      </div>
    </div>
  );
}
