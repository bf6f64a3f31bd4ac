import { getViewportForBounds, useReactFlow, useStore } from '@xyflow/react';
import { Maximize, ZoomIn, ZoomOut } from 'lucide-react';
import { useCallback, useEffect, useRef } from 'react';
import { IconButton } from '@/design';
import styles from './Canvas.module.css';
import { boundsOf, NODE_HEIGHT, NODE_WIDTH, type Direction, type Point } from './layout';

interface Props { points: Map<string, Point>; /** The agents to show when they change: those found, or those of the run. */ focus?: ReadonlySet<string> | undefined; main?: string | undefined; selected?: string | undefined; direction: Direction; isStill: boolean }

/** Below this zoom names cannot be read: the view then starts at the main agent instead of showing everything. */
const READABLE = 0.4;
const MIN_ZOOM = 0.05;

/** Zoom buttons; also shows what matters when the graph, the search or the run changes. */
export function ViewControls({ points, focus, main, selected, direction, isStill }: Props) {
  const { zoomIn, zoomOut, setViewport, setCenter, getViewport } = useReactFlow();
  const width = useStore((state) => state.width);
  const height = useStore((state) => state.height);
  const duration = isStill ? 0 : 160;
  // Which agents are in focus decides, not how their state changes: a running run does not move the view at every event.
  const focused = focus ? [...focus].filter((id) => points.has(id)).join(' ') : '';
  const shown = useRef<{ points?: Map<string, Point>; focused: string }>({ focused: '' });

  const show = useCallback((ids: Iterable<string>, time: number) => {
    const viewport = getViewportForBounds(boundsOf(points, ids), width, height, MIN_ZOOM, 1, 0.1);
    void setViewport(viewport, { duration: time });
    return viewport.zoom;
  }, [points, width, height, setViewport]);

  useEffect(() => {
    if (width === 0 || height === 0) return;
    const isNew = shown.current.points !== points;
    if (!isNew && (shown.current.focused === focused || !focused)) return;
    shown.current = { points, focused };
    const zoom = show(focused ? focused.split(' ') : points.keys(), isNew ? 0 : duration);
    const at = main ? points.get(main) : undefined;
    if (!focused && at && zoom < READABLE) void setCenter(at.x + NODE_WIDTH * (direction === 'LR' ? 1.5 : 0.5), at.y + NODE_HEIGHT * (direction === 'LR' ? 0.5 : 2), { zoom: 0.75 });
  }, [points, focused, main, direction, width, height, duration, show, setCenter]);

  // The panel takes room from the drawing: a selected agent that would be hidden is scrolled into view.
  useEffect(() => {
    const at = selected ? points.get(selected) : undefined;
    if (!at || width === 0) return;
    const { x, y, zoom } = getViewport();
    const [left, top] = [at.x * zoom + x, at.y * zoom + y];
    const isVisible = left >= 0 && top >= 0 && left + NODE_WIDTH * zoom <= width && top + NODE_HEIGHT * zoom <= height;
    if (!isVisible) void setCenter(at.x + NODE_WIDTH / 2, at.y + NODE_HEIGHT / 2, { zoom, duration });
  }, [selected, points, width, height, duration, getViewport, setCenter]);

  return (
    <div role="group" aria-label="Zoom" className={styles.controls}>
      <IconButton icon={ZoomIn} label="Zoom in" size="small" onClick={() => void zoomIn({ duration })} />
      <IconButton icon={ZoomOut} label="Zoom out" size="small" onClick={() => void zoomOut({ duration })} />
      <IconButton icon={Maximize} label="Show the whole graph" size="small" onClick={() => show(points.keys(), duration)} />
    </div>
  );
}
