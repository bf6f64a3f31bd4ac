import { FileText } from 'lucide-react';
import type { Schemas } from '@/api/client';
import { bytes, capitalize } from '@/lib/format';
import { metadataOf, triggersOf, type SkillFile, type Value } from './frontmatter';
import { Origin, Validity } from './Origin';
import styles from './skills.module.css';

/** Shown elsewhere on the page. */
const SHOWN = ['name', 'description', 'metadata', 'triggers'];

export function SkillFacts({ skill, file, problems }: { skill: Schemas['SkillDetail']; file: SkillFile; problems: string[] }) {
  const triggers = triggersOf(file);
  const metadata = file.fields.metadata;
  const pairs = typeof metadata === 'object' && !Array.isArray(metadata) ? Object.entries(metadata).filter(([name]) => !/triggers$/.test(name) && name !== 'version') : [];
  const others = [...Object.entries(file.fields).filter(([name]) => !SHOWN.includes(name)), ...pairs];
  const version = metadataOf(file, 'version');
  return (
    <aside className={styles.facts} aria-label="About this skill">
      <dl>
        <Fact name="Validity"><Validity problems={problems} /></Fact>
        <Fact name="Source"><Origin origin={skill.origin} /></Fact>
        {version && <Fact name="Version">{version}</Fact>}
        {others.filter(([name]) => name !== 'version').map(([name, value]) => <Fact key={name} name={label(name)}>{shown(value)}</Fact>)}
        <Fact name="Files"><span className={styles.file}><FileText size={14} aria-hidden />SKILL.md <span className="faint">{bytes(new Blob([skill.text]).size)}</span></span></Fact>
      </dl>
      {triggers.length > 0 && <section><h2>Triggers</h2><ul className={styles.triggers}>{triggers.map((trigger) => <li key={trigger} dir="auto">{trigger}</li>)}</ul></section>}
    </aside>
  );
}

function Fact({ name, children }: { name: string; children: React.ReactNode }) {
  return <div className={styles.fact}><dt>{name}</dt><dd>{children}</dd></div>;
}

/** `allowed-tools` is read as “Allowed tools”. */
function label(name: string): string {
  return capitalize(name).replace(/[-_]/g, ' ');
}

function shown(value: Value): string {
  if (typeof value === 'string') return value;
  return Array.isArray(value) ? value.join(', ') : Object.entries(value).map(([name, inner]) => `${name}: ${inner}`).join(', ');
}
