const MAX_LENGTH = 200_000;
/** Lines outside of code. */
const MAX_LINES = 5_000;
/** Quotes and list items inside each other. */
const MAX_DEPTH = 64;
/** Columns of the widest row times the rows of a table: rows are filled up with empty cells. */
const MAX_CELLS = 20_000;
/** Marks of emphasis, links, addresses and code are matched within their paragraph, each with each: the sum of squares over all paragraphs. */
const MAX_PAIRS = 9_000_000;

const FENCE = /^(`{3,}(?=[^`]*$)|~{3,})/;
const HTML = /^ {0,3}<[!?/a-z]/i;

/**
 * Whether parsing this Markdown could block the page or build more elements than it can show. The parser takes quadratic time for some texts, and
 * a few thousand characters are enough. The check takes linear time.
 */
export function isTooComplex(text: string): boolean {
  if (text.length > MAX_LENGTH) return true;
  let fence: string | undefined;
  let hasHtml = false;
  let lines = 0;
  let pairs = 0;
  let cells = 0;
  let block = { marks: 0, columns: 0, lines: 0 };
  const close = () => {
    pairs += block.marks ** 2;
    if (block.columns > 0) cells += (block.columns + 1) * block.lines;
    block = { marks: 0, columns: 0, lines: 0 };
  };
  for (const line of text.split(/\r\n|\n|\r/)) {
    if (fence !== undefined) {
      if (isEnd(line, fence)) fence = undefined;
      continue;
    }
    hasHtml ||= HTML.test(line);
    // Only a fence without indentation is certain not to be inside of a list item, and in HTML it is text.
    fence = hasHtml ? undefined : FENCE.exec(line)?.[1];
    lines += 1;
    if (lines > MAX_LINES || depthOf(line) > MAX_DEPTH) return true;
    if (fence !== undefined || line.trim() === '') {
      close();
      continue;
    }
    const { marks, columns } = countIn(line);
    block = { marks: block.marks + marks, columns: Math.max(block.columns, columns), lines: block.lines + 1 };
  }
  close();
  return pairs > MAX_PAIRS || cells > MAX_CELLS;
}

function isEnd(line: string, fence: string): boolean {
  const trimmed = line.trim();
  return trimmed.length >= fence.length && trimmed.startsWith(fence) && trimmed === fence.charAt(0).repeat(trimmed.length);
}

/** How deep the quotes and list items are that a line begins with. Each level of a list takes two columns of indentation. */
function depthOf(line: string): number {
  let markers = 0;
  let spaces = 0;
  for (let at = 0; at < line.length; ) {
    const char = line.charAt(at);
    const length = char === '>' ? 1 : bulletAt(line, at);
    if (char === ' ' || char === '\t') spaces += char === '\t' ? 4 : 1;
    else if (length > 0) markers += 1;
    else break;
    at += Math.max(1, length);
  }
  return markers === 0 ? 0 : markers + (spaces - markers) / 2;
}

/** The length of the marker of a list item, or 0. */
function bulletAt(line: string, at: number): number {
  const marker = /^(?:[-+*]|\d{1,9}[.)])(?=[ \t]|$)/.exec(line.slice(at, at + 12));
  return marker?.[0].length ?? 0;
}

function countIn(line: string): { marks: number; columns: number } {
  let marks = 0;
  let columns = 0;
  for (const char of line) {
    if (char === '|') columns += 1;
    else if ('*_~[]`<@'.includes(char)) marks += 1;
  }
  return { marks, columns };
}
