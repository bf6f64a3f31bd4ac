import { useQuery } from '@tanstack/react-query';
import { Download, SearchX } from 'lucide-react';
import { useMemo } from 'react';
import type { Schemas } from '@/api/client';
import { Problem } from '@/api/problem';
import { Button, CopyButton, EmptyState, LinkButton, Notice, Page, Skeleton, Tabs } from '@/design';
import { download } from '@/lib/download';
import { useSearchState } from '@/lib/useSearchState';
import { LoadError } from '@/shell/LoadError';
import { Markdown } from '@/markdown/Markdown';
import { parseSkill } from './frontmatter';
import { Origin } from './Origin';
import { skillQueries } from './queries';
import { SkillFacts } from './SkillFacts';
import styles from './skills.module.css';
import { fileProblems } from './validity';

export function SkillDetail({ name }: { name: string }) {
  const { data: skill, error, refetch } = useQuery(skillQueries.skill(name));
  if (error instanceof Problem && error.status === 404) {
    return <Page title="Skill not found"><EmptyState icon={SearchX} title="This skill does not exist" action={<LinkButton href="/skills">Show all skills</LinkButton>}>There is no skill <code>{name}</code>. It may have been renamed or deleted.</EmptyState></Page>;
  }
  const save = () => skill && download('SKILL.md', 'text/markdown', [skill.text]);
  return (
    <Page
      title={name}
      lead={skill && <span dir="auto">{skill.description}</span>}
      actions={skill && <><Origin origin={skill.origin} /><Button icon={Download} onClick={save}>Download SKILL.md</Button></>}
    >
      {error && <LoadError what="the skill" error={error} onRetry={() => void refetch()} />}
      {!skill && !error && <><Skeleton rows={1} /><Skeleton rows={3} height={128} /></>}
      {skill && <SkillBody skill={skill} />}
    </Page>
  );
}

function SkillBody({ skill }: { skill: Schemas['SkillDetail'] }) {
  const [params, change] = useSearchState();
  const file = useMemo(() => parseSkill(skill.text), [skill.text]);
  const problems = useMemo(() => fileProblems(skill.name, file), [skill.name, file]);
  const tabs = [
    { id: 'rendered', label: 'Instructions', content: () => <div className={styles.rendered}>{file.body ? <Markdown text={file.body} /> : <p className="faint">The file has no instructions.</p>}</div> },
    { id: 'raw', label: 'SKILL.md', content: () => <Raw text={skill.text} /> },
  ];
  return (
    <div className={styles.detail}>
      <div className={styles.main}>
        {problems.length > 0 && <Notice tone="warning"><strong>This skill does not follow the Agent Skills rules.</strong><ul className={styles.problems}>{problems.map((problem) => <li key={problem}>{problem}</li>)}</ul></Notice>}
        <Tabs label="The skill's file" tabs={tabs} active={params.get('view') ?? 'rendered'} onChange={(view) => change({ view: view === 'rendered' ? undefined : view })} />
      </div>
      <SkillFacts skill={skill} file={file} problems={problems} />
    </div>
  );
}

function Raw({ text }: { text: string }) {
  return (
    <div className={styles.raw}>
      <div className={styles.copy}><CopyButton text={text} label="Copy SKILL.md" /></div>
      <pre>{text}</pre>
    </div>
  );
}
