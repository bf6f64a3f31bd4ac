/** A value between the `---` lines of a SKILL.md, as far as the page shows it. */
export type Value = string | string[] | Record<string, string>;
export interface SkillFile { fields: Record<string, Value>; body: string; hasFrontmatter: boolean }

/**
 * Reads the frontmatter of a SKILL.md: texts, folded texts, lists and one level of names with values. It is for display; the server
 * is what validates skills.
 */
export function parseSkill(text: string): SkillFile {
  const match = /^---\r?\n([\s\S]*?)\r?\n---[ \t]*(?:\r?\n|$)/.exec(text);
  if (!match) return { fields: {}, body: text, hasFrontmatter: false };
  return { fields: parseFields(match[1]?.split(/\r?\n/) ?? []), body: text.slice(match[0].length).trimStart(), hasFrontmatter: true };
}

function parseFields(lines: string[]): Record<string, Value> {
  const fields: Record<string, Value> = {};
  for (let at = 0; at < lines.length; ) {
    const [, name, rest = ''] = /^([\w.-]+):\s*(.*)$/.exec(lines[at] ?? '') ?? [];
    at += 1;
    if (!name) continue;
    const nested: string[] = [];
    while (at < lines.length && (/^\s+\S/.test(lines[at] ?? '') || /^-\s/.test(lines[at] ?? '') || lines[at] === '')) nested.push(lines[at++] ?? '');
    fields[name] = valueOf(rest.trim(), nested);
  }
  return fields;
}

function valueOf(rest: string, nested: string[]): Value {
  const lines = nested.map((line) => line.trim());
  if (/^[>|][+-]?\d*$/.test(rest)) return lines.join(rest.startsWith('|') ? '\n' : ' ').trim();
  if (/^\[.*\]$/.test(rest)) return rest.slice(1, -1).split(',').map(unquote).filter(Boolean);
  if (rest) return unquote([rest, ...lines.filter(Boolean)].join(' '));
  const filled = lines.filter(Boolean);
  if (filled.length > 0 && filled.every((line) => line.startsWith('- '))) return filled.map((line) => unquote(line.slice(2)));
  const pairs = filled.map((line) => /^([\w.-]+):\s*(.*)$/.exec(line)).filter((pair) => pair !== null);
  return pairs.length > 0 ? Object.fromEntries(pairs.map(([, name = '', value = '']) => [name, unquote(value)])) : filled.join(' ');
}

function unquote(text: string): string {
  const trimmed = text.trim();
  const quoted = /^(["'])([\s\S]*)\1$/.exec(trimmed);
  return quoted?.[2] ?? trimmed;
}

/** What a skill reacts to: Baton keeps it in the metadata as one text with semicolons. */
export function triggersOf({ fields }: SkillFile): string[] {
  const metadata = fields.metadata;
  const kept = typeof metadata === 'object' && !Array.isArray(metadata) ? (metadata['baton.triggers'] ?? metadata.triggers) : undefined;
  const found = kept ?? fields.triggers;
  if (Array.isArray(found)) return found;
  return typeof found === 'string' ? found.split(';').map((trigger) => trigger.trim()).filter(Boolean) : [];
}

/** A value of the metadata, such as `version`. */
export function metadataOf({ fields }: SkillFile, name: string): string | undefined {
  const metadata = fields.metadata;
  const inner = typeof metadata === 'object' && !Array.isArray(metadata) ? metadata[name] : undefined;
  const outer = fields[name];
  return inner ?? (typeof outer === 'string' ? outer : undefined);
}
