import { duration } from '@/lib/format';
import type { Segment } from './segments';

const KINDS: Record<Segment['kind'], string> = { model: 'Model call', tool: 'Tool call', delegation: 'Sub-agents', wait: 'Wait' };

export function kindWord(kind: Segment['kind']): string {
  return KINDS[kind];
}

/** A segment in one line, for screen readers. */
export function describe({ kind, name, start, end, call, attempt, attempts }: Segment): string {
  const parts = [
    `${KINDS[kind]} ${name}`,
    end === undefined ? 'in progress' : duration(end - start),
    attempts > 1 && `attempt ${attempt} of ${attempts}`,
    call && call.outcome !== 'ok' && call.outcome,
    call?.error,
  ];
  return parts.filter(Boolean).join(', ');
}
