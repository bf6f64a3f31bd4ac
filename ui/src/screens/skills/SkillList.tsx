import { useInfiniteQuery } from '@tanstack/react-query';
import { BookOpen, SearchX } from 'lucide-react';
import { useState } from 'react';
import { Link } from 'wouter';
import type { Schemas } from '@/api/client';
import { useMay } from '@/api/useMay';
import { Button, EmptyState, Page, Skeleton, Table, TextField, type Column } from '@/design';
import { LoadError } from '@/shell/LoadError';
import { CreateButton } from './Create';
import { Origin, Validity } from './Origin';
import { skillQueries } from './queries';
import styles from './skills.module.css';
import { headProblems } from './validity';

type Skill = Schemas['SkillView'];

const columns: Column<Skill>[] = [
  { key: 'name', title: 'Name', cell: (skill) => <Link href={`/skills/${encodeURIComponent(skill.name)}`} className={styles.name}>{skill.name}</Link> },
  { key: 'description', title: 'Description', wide: true, cell: (skill) => <span className={styles.description} title={skill.description} dir="auto">{skill.description}</span> },
  { key: 'origin', title: 'Source', cell: (skill) => <Origin origin={skill.origin} /> },
  { key: 'validity', title: 'Validity', cell: (skill) => <Validity problems={headProblems(skill)} /> },
];

export function SkillList() {
  const skills = useInfiniteQuery(skillQueries.list());
  const may = useMay();
  const [text, setText] = useState('');
  const loaded = skills.data?.pages.flatMap((page) => page.data) ?? [];
  const words = text.trim().toLowerCase();
  const shown = loaded.filter((skill) => `${skill.name} ${skill.description}`.toLowerCase().includes(words));
  const more = skills.hasNextPage && <div className={styles.more}><Button size="small" busy={skills.isFetchingNextPage} onClick={() => void skills.fetchNextPage()}>Load more</Button></div>;
  return (
    <Page title="Skills" lead="Instructions that agents load when a task needs them." actions={loaded.length > 0 && <CreateButton />}>
      {skills.isError && <LoadError what="the skills" error={skills.error} onRetry={() => void skills.refetch()} />}
      {skills.isPending && <Skeleton rows={5} height={36} />}
      {loaded.length > 5 && <TextField label="Search skills" hideLabel type="search" placeholder="Search skills" className={styles.search} value={text} onChange={(event) => setText(event.target.value)} />}
      {shown.length > 0 && <Table label="Skills" columns={columns} rows={shown} rowKey={(skill) => skill.name} footer={more} />}
      {loaded.length > 0 && shown.length === 0 && <EmptyState icon={SearchX} title="No skill matches" action={<Button onClick={() => setText('')}>Clear the search</Button>} />}
      {skills.isSuccess && loaded.length === 0 && (
        <EmptyState icon={BookOpen} title="No skills yet" action={<CreateButton />}>
          A skill teaches agents how to do one task well. {may('skill:create') ? 'Describe the task in a conversation, and the file is written for you.' : 'Creating one needs the permission skill:create.'}
        </EmptyState>
      )}
    </Page>
  );
}
