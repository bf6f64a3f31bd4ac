import type { Entry } from './entries';

/** Messages in a block. */
const SIZE = 20;

export interface Block { key: string; entries: Entry[] }

/**
 * Cuts the conversation into blocks, so that a word that is added to the last answer touches the last block only. The numbers of the
 * messages say where: older and newer ones do not move the cuts.
 */
export function blocksOf(entries: Entry[]): Block[] {
  const blocks: Block[] = [];
  let current = -1;
  for (const entry of entries) {
    const number = entry.kind === 'message' ? entry.item.number : undefined;
    const next = number === undefined ? current : Math.max(current, Math.floor(number / SIZE));
    const last = blocks.at(-1);
    if (last && next === current) last.entries.push(entry);
    else blocks.push({ key: String(next), entries: [entry] });
    current = next;
  }
  return blocks;
}

/** Whether two blocks show the same. Entries are new objects each time; the items and runs in them are not. */
export function isSameBlock(one: Block, other: Block): boolean {
  return one.entries.length === other.entries.length && one.entries.every((entry, at) => isSameEntry(entry, other.entries[at]));
}

function isSameEntry(one: Entry, other: Entry | undefined): boolean {
  if (!other) return false;
  const [left, right] = [one as unknown as Record<string, unknown>, other as unknown as Record<string, unknown>];
  return Object.keys(left).length === Object.keys(right).length && Object.keys(left).every((name) => left[name] === right[name]);
}
