import { SkillDetail } from './SkillDetail';
import { SkillList } from './SkillList';

export default function SkillsScreen({ name }: { name?: string }) {
  return name ? <SkillDetail key={name} name={name} /> : <SkillList />;
}
