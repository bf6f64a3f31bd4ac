import { KIND_IDS, KINDS, type EdgeKind } from './kinds';
import type { Edge } from './model';
import styles from './Graph.module.css';

/** The kinds of edges with their lines; each is also the switch that shows or hides it. */
export function Legend({ edges, kinds, onChange }: { edges: Edge[]; kinds: ReadonlySet<EdgeKind>; onChange: (kinds: EdgeKind[]) => void }) {
  const present = KIND_IDS.filter((kind) => edges.some((edge) => edge.kind === kind));
  if (present.length === 0) return null;
  const toggle = (kind: EdgeKind) => onChange(present.filter((each) => (each === kind ? !kinds.has(each) : kinds.has(each))));
  return (
    <div role="group" aria-label="Kinds of relations" className={styles.legend}>
      {present.map((kind) => {
        const { label, meaning, dash, width } = KINDS[kind];
        return (
          <button key={kind} type="button" className={styles.kind} aria-pressed={kinds.has(kind)} title={meaning} onClick={() => toggle(kind)}>
            <svg width="32" height="8" aria-hidden className={styles.sample}><line x1="1" y1="4" x2="31" y2="4" strokeDasharray={dash} strokeWidth={width} /></svg>
            {label}<span className={styles.kindCount}>{edges.filter((edge) => edge.kind === kind).length}</span>
          </button>
        );
      })}
    </div>
  );
}
