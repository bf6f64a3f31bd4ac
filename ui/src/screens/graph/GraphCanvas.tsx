import { Background, BackgroundVariant, MiniMap, Panel, ReactFlow, ReactFlowProvider, useStore } from '@xyflow/react';
import '@xyflow/react/dist/style.css';
import { useMemo } from 'react';
import { useAgents } from '@/api/useAgents';
import { useDebounced } from '@/lib/useDebounced';
import { useMedia } from '@/lib/useMedia';
import { AgentNode } from './AgentNode';
import styles from './Canvas.module.css';
import { baseEdges, baseNodes, withEdgeState, withNodeState, type AgentFlowEdge, type AgentFlowNode } from './flow';
import { layout } from './layout';
import { matches, type Model } from './model';
import type { Overlay } from './overlay';
import { Arrows, RelationEdge } from './RelationEdge';
import { ViewControls } from './ViewControls';

const NODE_TYPES = { agent: AgentNode };
const EDGE_TYPES = { relation: RelationEdge };
/** From this many agents on there is a small map. */
const MAP_FROM = 25;

interface CanvasProps { model: Model; kinds: ReadonlySet<string>; search: string; selected?: string | undefined; overlay?: Overlay | undefined; main?: string | undefined; onSelect: (id: string | undefined) => void }

export function GraphCanvas(props: CanvasProps) {
  return <ReactFlowProvider><Canvas {...props} /></ReactFlowProvider>;
}

function Canvas({ model, kinds, search, selected, overlay, main, onSelect }: CanvasProps) {
  const { face } = useAgents();
  const direction = useMedia('(max-width: 720px)') ? 'TB' : 'LR';
  const isStill = useMedia('(prefers-reduced-motion: reduce)');
  const isSmall = useStore((state) => state.transform[2] < 0.5);
  // The layout depends on the graph only: a run, a search or a selection never moves anything.
  const places = useMemo(() => layout(model, direction), [model, direction]);
  const placed = useMemo(() => baseNodes(model, places, direction, face), [model, places, direction, face]);
  const drawn = useMemo(() => baseEdges(model, places, kinds), [model, places, kinds]);
  const wanted = useDebounced(search.trim(), 200);
  const found = useMemo(() => (wanted ? new Set(model.nodes.filter((node) => matches(node, wanted)).map((node) => node.id)) : undefined), [model, wanted]);
  const known = useMemo(() => new Set(model.nodes.map((node) => node.id)), [model]);
  const nodes = useMemo(() => withNodeState(placed, { selected, found, overlay }), [placed, selected, found, overlay]);
  const edges = useMemo(() => withEdgeState(drawn, { selected, found, overlay }, known), [drawn, selected, found, overlay, known]);
  const focus = useMemo(() => (overlay ? new Set(overlay.byAgent.keys()) : found), [overlay, found]);
  return (
    <div className={styles.canvas} data-quiet={isSmall || model.edges.length > 120}>
      <Arrows />
      <ReactFlow<AgentFlowNode, AgentFlowEdge>
        nodes={nodes} edges={edges} nodeTypes={NODE_TYPES} edgeTypes={EDGE_TYPES} minZoom={0.05} maxZoom={1.75} aria-label="Graph of the agents"
        nodesDraggable={false} nodesConnectable={false} nodesFocusable={false} edgesFocusable={false} elementsSelectable={false} onlyRenderVisibleElements disableKeyboardA11y
        onNodeClick={(_, node) => onSelect(node.id === selected ? undefined : node.id)} onPaneClick={() => onSelect(undefined)}
      >
        <Background variant={BackgroundVariant.Dots} gap={24} size={1} />
        {model.nodes.length >= MAP_FROM && direction === 'LR' && <MiniMap pannable zoomable ariaLabel="Map of the whole graph" className={styles.map} nodeClassName={(node) => ((node as AgentFlowNode).data.node.findings.length > 0 ? styles.mapBroken! : styles.mapNode!)} />}
        <Panel position="bottom-left"><ViewControls points={places.points} focus={focus} main={main} selected={selected} direction={direction} isStill={isStill} /></Panel>
      </ReactFlow>
    </div>
  );
}
