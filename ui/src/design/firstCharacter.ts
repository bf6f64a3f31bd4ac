const SEGMENTER = new Intl.Segmenter();

/** The first character as people see it: an emoji of several code points is one. */
export function firstCharacter(text: string): string {
  for (const { segment } of SEGMENTER.segment(text.trim())) return segment;
  return '';
}
