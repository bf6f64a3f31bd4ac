import { useReactFlow } from '@xyflow/react';
import { Maximize, ZoomIn, ZoomOut } from 'lucide-react';
import { useEffect, useRef } from 'react';
import { IconButton } from '@/design';
import styles from './Canvas.module.css';
import { NODE_HEIGHT, NODE_WIDTH, type Point } from './layout';

interface Props { points: Map<string, Point>; focus?: { has: (id: string) => boolean; keys: () => Iterable<string>; size: number } | undefined; main?: string | undefined; isStill: boolean }

/** Below this zoom names cannot be read: the view then starts at the main agent instead of showing everything. */
const READABLE = 0.42;

/** Zoom buttons; also shows what matters when the graph, the search or the run changes. */
export function ViewControls({ points, focus, main, isStill }: Props) {
  const { fitView, zoomIn, zoomOut, getZoom, setCenter } = useReactFlow();
  const time = isStill ? 0 : 160;
  // What is shown is decided by which agents are in focus, not by how their state changes.
  const focused = focus ? [...focus.keys()].filter((id) => points.has(id)).join(' ') : '';
  const before = useRef<Map<string, Point>>(undefined);
  useEffect(() => {
    const isNew = before.current !== points;
    before.current = points;
    const ids = focused ? focused.split(' ').map((id) => ({ id })) : undefined;
    if (!ids && !isNew) return;
    void fitView({ padding: 0.12, maxZoom: 1, duration: isNew ? 0 : time, ...(ids ? { nodes: ids } : {}) }).then(() => {
      const at = main ? points.get(main) : undefined;
      if (!ids && at && getZoom() < READABLE) void setCenter(at.x + NODE_WIDTH * 1.5, at.y + NODE_HEIGHT / 2, { zoom: 0.75 });
    });
  }, [points, focused, main, time, fitView, getZoom, setCenter]);
  return (
    <div role="group" aria-label="Zoom" className={styles.controls}>
      <IconButton icon={ZoomIn} label="Zoom in" size="small" onClick={() => void zoomIn({ duration: time })} />
      <IconButton icon={ZoomOut} label="Zoom out" size="small" onClick={() => void zoomOut({ duration: time })} />
      <IconButton icon={Maximize} label="Show the whole graph" size="small" onClick={() => void fitView({ padding: 0.08, maxZoom: 1, duration: time })} />
    </div>
  );
}
