import { Page } from '@/design';

export default function SkillsScreen({ name }: { name?: string }) {
  return <Page title={name ?? 'Skills'}>Not built yet</Page>;
}
