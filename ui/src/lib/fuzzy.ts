export interface FuzzyMatch {
  /** Higher is better; only comparable for the same query. */
  score: number;
  /** The positions in the text that matched, ascending. */
  positions: number[];
}

const WORD_START = 8;
const ADJACENT = 6;
const GAP = 0.2;

/**
 * Whether all characters of the query occur in the text in this order. Beginnings of words and characters side by side count more, gaps and
 * long texts less. Spaces in the query separate words that have to occur in order, too. Undefined when it does not match.
 */
export function fuzzyMatch(query: string, text: string): FuzzyMatch | undefined {
  const wanted = [...query.toLowerCase()].filter((char) => char.trim() !== '');
  if (wanted.length === 0) return { score: 0, positions: [] };
  const haystack = text.toLowerCase();
  let best: FuzzyMatch | undefined;
  // A greedy match may start too early ("co" in "Record costs"): every start is tried.
  for (let start = haystack.indexOf(wanted[0]!); start >= 0; start = haystack.indexOf(wanted[0]!, start + 1)) {
    const positions = matchFrom(wanted, haystack, start);
    if (!positions) break;
    const score = scoreOf(positions, text);
    if (!best || score > best.score) best = { score, positions };
  }
  return best;
}

function matchFrom(wanted: string[], haystack: string, start: number): number[] | undefined {
  const positions = [start];
  for (const char of wanted.slice(1)) {
    const at = haystack.indexOf(char, positions.at(-1)! + 1);
    if (at < 0) return undefined;
    positions.push(at);
  }
  return positions;
}

function scoreOf(positions: number[], text: string): number {
  const span = positions.at(-1)! - positions[0]! + 1;
  const points = positions.map((at, index) => 1 + (isWordStart(text, at) ? WORD_START : 0) + (index > 0 && at === positions[index - 1]! + 1 ? ADJACENT : 0));
  return points.reduce((sum, value) => sum + value, 0) - GAP * (span - positions.length) - text.length / 100;
}

function isWordStart(text: string, at: number): boolean {
  return at === 0 || /[\s\-_/.@:]/.test(text[at - 1]!) || (/\p{Lu}/u.test(text[at]!) && /\p{Ll}/u.test(text[at - 1]!));
}
