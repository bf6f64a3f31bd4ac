import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { useRoster } from '@/api/useRoster';
import { plural } from '@/lib/format';
import { LoadError } from '@/shell/LoadError';
import { FirstAgent } from '../agents/FirstAgent';
import styles from './Graph.module.css';
import { GraphCanvas } from './GraphCanvas';
import { GraphFilters } from './GraphFilters';
import { GraphList } from './GraphList';
import { around, modelOf } from './model';
import { NodePanel } from './NodePanel';
import { overlayOf } from './overlay';
import { graphQuery, type Graph } from './queries';
import { RunSummary } from './RunSummary';
import { useGraphState } from './useGraphState';
import { useRunPath } from './useRunPath';

export default function GraphScreen() {
  useRoster();
  const { data: graph, error, refetch } = useQuery(graphQuery());
  if (graph && graph.agents.length > 0) return <Loaded graph={graph} />;
  return (
    <div className={styles.screen}>
      <header className={styles.header}><h1>Graph</h1></header>
      {graph ? <FirstAgent />
        : error ? <div className={styles.pad}><LoadError what="the graph" error={error} onRetry={() => void refetch()} /></div>
        : <div className={styles.placeholder} role="status" aria-label="Loading the graph" />}
    </div>
  );
}

function Loaded({ graph }: { graph: Graph }) {
  const state = useGraphState();
  const { agent, runId, kinds, search, selected, view, set } = state;
  const whole = useMemo(() => modelOf(graph), [graph]);
  const model = useMemo(() => around(whole, agent), [whole, agent]);
  const { run, error, visits } = useRunPath(runId);
  const overlay = useMemo(() => (runId ? overlayOf(visits, model.edges) : undefined), [runId, visits, model]);
  const node = selected ? model.byId.get(selected) : undefined;
  const problems = model.nodes.filter((each) => each.findings.length > 0).length;
  return (
    <div className={styles.screen}>
      <header className={styles.header}>
        <div>
          <h1>Graph</h1>
          <p className="soft">{plural(model.nodes.length, 'agent')}, {plural(model.edges.length, 'relation')}{problems > 0 && <>, <span className={styles.runError}>{problems} with problems</span></>}</p>
        </div>
      </header>
      <GraphFilters state={state} model={whole} shown={model} />
      {runId && <div className={styles.pad}><RunSummary run={run} error={error} steps={visits.length} onClose={() => set({ run: undefined })} /></div>}
      <div className={styles.body} data-view={view}>
        {view === 'list' ? <GraphList model={model} kinds={kinds} search={search} overlay={overlay} /> : (
          <>
            <div className={styles.canvas}><GraphCanvas model={model} kinds={kinds} search={search} selected={selected} overlay={overlay} main={agent ?? graph.main} onSelect={(id) => set({ node: id })} /></div>
            {node && <NodePanel key={node.id} node={node} model={whole} overlay={overlay} onClose={() => set({ node: undefined })} onOnly={() => set({ agent: node.id, node: undefined })} />}
          </>
        )}
      </div>
    </div>
  );
}
