import { Ban, ChevronDown, ChevronRight, CircleCheck, CircleDot, CircleX, User } from 'lucide-react';
import { useState } from 'react';
import { Link } from 'wouter';
import { useAgents } from '@/api/useAgents';
import { AgentBadge, Badge, IconButton, Table, Time, type Column } from '@/design';
import { capitalize, shortId } from '@/lib/format';
import { placeOf, toneOf, type Entry, type FilterName } from './data';
import { EntryDetails } from './EntryDetails';
import styles from './Audit.module.css';

/** Who did what, on whose behalf, and how it was decided. */
export function AuditTable({ entries, onFilter }: { entries: Entry[]; onFilter: (name: FilterName, value: string) => void }) {
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const toggle = (place: string) => setOpen((old) => (old.has(place) ? new Set([...old].filter((one) => one !== place)) : new Set([...old, place])));
  const columns: Column<Entry>[] = [
    { key: 'at', title: 'When', cell: (entry) => <When entry={entry} isOpen={open.has(placeOf(entry))} onToggle={() => toggle(placeOf(entry))} /> },
    { key: 'actor', title: 'Actor', cell: (entry) => <Actor entry={entry} onFilter={onFilter} /> },
    { key: 'action', title: 'Action', wide: true, cell: (entry) => <Action entry={entry} onFilter={onFilter} /> },
    { key: 'decision', title: 'Decision', cell: (entry) => <Decision decision={entry.decision} /> },
    { key: 'subject', title: 'Subject', wide: true, cell: (entry) => <Subject entry={entry} /> },
  ];
  return <Table label="Audit trail" columns={columns} rows={entries} rowKey={placeOf} expanded={(entry) => (open.has(placeOf(entry)) ? <EntryDetails entry={entry} onFilter={onFilter} /> : undefined)} />;
}

function When({ entry, isOpen, onToggle }: { entry: Entry; isOpen: boolean; onToggle: () => void }) {
  return (
    <span className={styles.when}>
      <IconButton size="small" icon={isOpen ? ChevronDown : ChevronRight} label={`Details of entry ${placeOf(entry)}`} aria-expanded={isOpen} onClick={onToggle} />
      <Time at={entry.at} />
    </span>
  );
}

function Action({ entry, onFilter }: { entry: Entry; onFilter: (name: FilterName, value: string) => void }) {
  return <button type="button" className={styles.filter} title="Only this action" onClick={() => onFilter('action', entry.action)}><code>{entry.action}</code></button>;
}

function Actor({ entry, onFilter }: { entry: Entry; onFilter: (name: FilterName, value: string) => void }) {
  const { agents, face } = useAgents();
  const isAgent = agents.some((agent) => agent.id === entry.actor);
  return (
    <span className={styles.actor}>
      <button type="button" className={styles.filter} title="Only this actor" onClick={() => onFilter('actor', entry.actor)}>
        {isAgent ? <AgentBadge {...face(entry.actor)} /> : <><span className={styles.userIcon}><User size={14} aria-hidden /></span><span className="truncate" dir="auto">{entry.actor}</span></>}
      </button>
      {/* The column of its own is left out on narrow screens. */}
      <span className={styles.narrow}><Action entry={entry} onFilter={onFilter} /></span>
      {entry.on_behalf_of && <span className={styles.behalf} dir="auto">for {entry.on_behalf_of}</span>}
    </span>
  );
}

const ICONS = { success: CircleCheck, danger: CircleX, warning: Ban, neutral: CircleDot, info: CircleDot, accent: CircleDot };

export function Decision({ decision }: { decision: string }) {
  const tone = toneOf(decision);
  const Icon = ICONS[tone];
  return <Badge tone={tone}><Icon size={12} aria-hidden />{capitalize(decision).replaceAll('_', ' ')}</Badge>;
}

/** What it was about. Ids are short here and whole in the tooltip. */
function Subject({ entry: { thread_id, run_id } }: { entry: Entry }) {
  if (!thread_id && !run_id) return <span className="faint">–</span>;
  return (
    <span className={styles.subject}>
      {thread_id && <Link href={`/threads/${thread_id}`} title={thread_id}>Thread <code>{shortId(thread_id)}</code></Link>}
      {run_id && <Link href={`/runs/${run_id}`} title={run_id}>Run <code>{shortId(run_id)}</code></Link>}
    </span>
  );
}
