import { useLayoutEffect, useRef } from 'react';
import { cost, count, duration, tokens } from '@/lib/format';
import { RunStatus } from '@/run/RunStatus';
import { elapsed } from '../times';
import { kindWord } from './describe';
import type { TimelineRow, Segment } from './segments';
import styles from './Tooltip.module.css';
import type { Hovered } from './useTooltip';

const MARGIN = 8;

/** Details of what is pointed at, above or below it and always within the window. */
export function Tooltip({ row, segment, rect }: Hovered) {
  const ref = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const tip = ref.current;
    if (!tip) return;
    const { width, height } = tip.getBoundingClientRect();
    const middle = (Math.max(0, rect.left) + Math.min(innerWidth, rect.right)) / 2;
    const left = Math.min(innerWidth - width - MARGIN, Math.max(MARGIN, middle - width / 2));
    const top = rect.top > height + 2 * MARGIN ? rect.top - height - MARGIN : rect.bottom + MARGIN;
    tip.style.transform = `translate(${left}px, ${top}px)`;
  }, [row, segment, rect]);
  return <div ref={ref} role="tooltip" className={styles.tooltip}>{segment ? <SegmentDetails segment={segment} /> : <SessionDetails row={row} />}</div>;
}

function SegmentDetails({ segment }: { segment: Segment }) {
  const { kind, name, call, start, end, attempt, attempts } = segment;
  const rows: [string, string | false | undefined][] = [
    ['Duration', end === undefined ? 'in progress' : duration(end - start)],
    ['Attempt', attempts > 1 && `${attempt} of ${attempts}`],
    ['Outcome', call && call.outcome !== 'ok' && call.outcome],
    ['Tokens', call?.kind === 'model' && `${count(call.usage.input_tokens)} in, ${count(call.usage.output_tokens)} out`],
    ['Cost', call?.kind === 'model' && cost(call.usage)],
    ['Provider', call?.provider],
    ['Error', call?.error],
  ];
  return <Details title={name} subtitle={kindWord(kind)} rows={rows} />;
}

function SessionDetails({ row: { node: { session }, end } }: { row: TimelineRow }) {
  const rows: [string, string | false | undefined][] = [
    ['Duration', end === undefined ? 'in progress' : duration(elapsed(session, end) ?? 0)],
    ['Calls', `${count(session.calls.models)} model, ${count(session.calls.tools)} tool${session.calls.failed ? `, ${session.calls.failed} failed` : ''}`],
    ['Tokens', count(tokens(session.own))],
    ['Cost', cost(session.own)],
    ['With sub-agents', session.sessions.length > 0 && `${count(tokens(session.subtree))} tokens, ${cost(session.subtree)}`],
    ['Error', session.error?.message],
  ];
  return <Details title={session.agent} subtitle={<RunStatus status={session.status} />} rows={rows} note={session.why} />;
}

function Details({ title, subtitle, rows, note }: { title: string; subtitle: React.ReactNode; rows: [string, string | false | undefined][]; note?: string | undefined }) {
  return (
    <>
      <div className={styles.head}><strong>{title}</strong><span className={styles.sub}>{subtitle}</span></div>
      {note && <p className={styles.note} dir="auto">{note}</p>}
      <dl className={styles.rows}>
        {rows.map(([label, value]) => value && <div key={label}><dt>{label}</dt><dd>{value}</dd></div>)}
      </dl>
    </>
  );
}
