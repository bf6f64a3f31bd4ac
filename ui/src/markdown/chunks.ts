/** A fence opens or closes a code block; its kind and length have to match. */
const FENCE = /^ {0,3}(`{3,}|~{3,})/;
/** A line that can belong to the block before it although a blank line separates them. */
const CONTINUES = /^(\s|[-*+](\s|$)|\d{1,9}[.)](\s|$)|[>|<])/;
/** Definitions are used from anywhere in the text, so a text with one stays whole. */
const DEFINITION = /^ {0,3}\[[^\]\n]{1,999}\]:/m;
/** Each chunk is parsed on its own, which costs more than its text. After this many chunks, only long ones are cut off. */
const MANY_CHUNKS = 200;
const LONG_CHUNK = 2_000;

/**
 * Cuts Markdown at blank lines between blocks that do not depend on each other. A text that grows keeps its chunks except for the last one, so
 * that only the last one is parsed again.
 */
export function chunksOf(text: string): string[] {
  if (DEFINITION.test(text)) return [text];
  const chunks: string[] = [];
  let chunk: string[] = [];
  let length = 0;
  let fence: string | undefined;
  let isAfterBlank = false;
  for (const line of text.split('\n')) {
    const isWorthIt = chunks.length < MANY_CHUNKS || length > LONG_CHUNK;
    if (isAfterBlank && fence === undefined && isWorthIt && line.trim() !== '' && !CONTINUES.test(line)) {
      chunks.push(chunk.join('\n'));
      chunk = [];
      length = 0;
    }
    chunk.push(line);
    length += line.length;
    const mark = FENCE.exec(line)?.[1];
    if (mark && fence === undefined) fence = mark;
    else if (mark && fence !== undefined && mark.startsWith(fence)) fence = undefined;
    isAfterBlank = line.trim() === '';
  }
  chunks.push(chunk.join('\n'));
  return chunks;
}
