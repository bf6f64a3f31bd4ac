import type { SkillFile } from './frontmatter';

const KEYS = ['name', 'description', 'license', 'compatibility', 'metadata', 'allowed-tools'];
const MAX_NAME = 64;
const MAX_DESCRIPTION = 1024;
const MAX_COMPATIBILITY = 500;

/** What the Agent Skills rules say against a name and a description. */
export function headProblems({ name, description }: { name: string; description: string }): string[] {
  const found: (string | false)[] = [
    name.length > MAX_NAME && `The name is longer than ${MAX_NAME} characters.`,
    !/^[a-z0-9]+(-[a-z0-9]+)*$/.test(name) && 'The name has to be lowercase letters, digits and single hyphens.',
    !description.trim() && 'The description is missing.',
    description.length > MAX_DESCRIPTION && `The description is longer than ${MAX_DESCRIPTION} characters.`,
    /[<>]/.test(description) && 'The description contains < or >, which some tools refuse.',
  ];
  return found.filter((problem): problem is string => problem !== false);
}

/** The same for the whole file. */
export function fileProblems(name: string, file: SkillFile): string[] {
  if (!file.hasFrontmatter) return ['The file has no frontmatter: it has to begin with a line of three hyphens.'];
  const { fields } = file;
  const text = (key: string) => (typeof fields[key] === 'string' ? fields[key] : '');
  const unknown = Object.keys(fields).filter((key) => !KEYS.includes(key));
  const found: (string | false)[] = [
    text('name') !== name && `The name in the file is “${text('name')}”, not “${name}”.`,
    text('compatibility').length > MAX_COMPATIBILITY && `The compatibility is longer than ${MAX_COMPATIBILITY} characters.`,
    unknown.length > 0 && `Keys that other tools refuse: ${unknown.join(', ')}.`,
  ];
  return [...headProblems({ name: text('name') || name, description: text('description') }), ...found.filter((problem): problem is string => problem !== false)];
}
