import { getBezierPath, type Position } from '@xyflow/react';
import type { Route } from './layout';

interface Ends { sourceX: number; sourceY: number; targetX: number; targetY: number; sourcePosition: Position; targetPosition: Position }

/** How far the curve of an edge that leads back, or to itself, swings around the nodes. */
const SWING = 110;
const REACH = 90;

/** The path of an edge and the place of its label. Edges that lead back pass below (or beside) the nodes instead of through them. */
export function curve(ends: Ends, isVertical: boolean, route?: Route): [string, number, number] {
  if (route) return alongGap(ends, isVertical, route);
  const { sourceX, sourceY, targetX, targetY } = ends;
  const isBack = isVertical ? targetY <= sourceY : targetX <= sourceX;
  if (!isBack) {
    const [path, x, y] = getBezierPath(ends);
    return [path, x, y];
  }
  const [ax, ay] = isVertical ? [sourceX + SWING * 1.6, sourceY + REACH] : [sourceX + REACH, Math.max(sourceY, targetY) + SWING];
  const [bx, by] = isVertical ? [targetX + SWING * 1.6, targetY - REACH] : [targetX - REACH, Math.max(sourceY, targetY) + SWING];
  const middle = (start: number, one: number, two: number, end: number) => (start + 3 * one + 3 * two + end) / 8;
  return [`M${sourceX},${sourceY} C${ax},${ay} ${bx},${by} ${targetX},${targetY}`, middle(sourceX, ax, bx, targetX), middle(sourceY, ay, by, targetY)];
}

/** Bends into the gap of the grid, runs along it, and turns to the target at its end. */
function alongGap({ sourceX, sourceY, targetX, targetY }: Ends, isVertical: boolean, { entry, lane }: Route): [string, number, number] {
  const point = (along: number, across: number) => (isVertical ? `${across},${along}` : `${along},${across}`);
  const [from, at] = isVertical ? [sourceY, sourceX] : [sourceX, sourceY];
  const [to, end] = isVertical ? [targetY, targetX] : [targetX, targetY];
  const half = (entry - from) / 2;
  const path = `M${point(from, at)} C${point(from + half, at)} ${point(entry - half, lane)} ${point(entry, lane)} L${point(to - 24, lane)} C${point(to - 8, lane)} ${point(to - 20, end)} ${point(to, end)}`;
  return isVertical ? [path, lane, to - 40] : [path, to - 56, lane];
}
