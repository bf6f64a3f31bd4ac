import { Plus } from 'lucide-react';
import { useLocation } from 'wouter';
import { useMay } from '@/api/useMay';
import { Button } from '@/design';

const PROMPT = 'I want to create a skill';

/** Skills are made in a conversation with the skill creator. */
export function CreateButton({ kind = 'primary' }: { kind?: 'primary' | 'secondary' }) {
  const may = useMay();
  const [, navigate] = useLocation();
  if (!may('skill:create')) return null;
  return <Button kind={kind} icon={Plus} onClick={() => navigate(`/?prompt=${encodeURIComponent(PROMPT)}`)}>Create a skill</Button>;
}
