import { describe, expect, it } from 'vitest';
import { chunksOf } from './chunks';

const TEXT = 'One.\n\nTwo\ncontinues.\n\n- a\n\n- b\n\n  more of b\n\n```js\ncode\n\nmore code\n```\n\nLast.';

describe('chunksOf', () => {
  it('cuts between paragraphs and keeps lists and code whole', () => {
    expect(chunksOf(TEXT)).toEqual(['One.\n', 'Two\ncontinues.\n\n- a\n\n- b\n\n  more of b\n', '```js\ncode\n\nmore code\n```\n', 'Last.']);
  });

  it('loses nothing', () => {
    expect(chunksOf(TEXT).join('\n')).toBe(TEXT);
    expect(chunksOf('')).toEqual(['']);
  });

  it('keeps all chunks but the last one while the text grows', () => {
    for (let end = 1; end < TEXT.length; end += 1) {
      const [before, after] = [chunksOf(TEXT.slice(0, end)), chunksOf(TEXT.slice(0, end + 1))];
      expect(after.slice(0, before.length - 1)).toEqual(before.slice(0, -1));
    }
  });

  it('leaves a text with link definitions whole', () => {
    const text = 'See [docs].\n\nMore.\n\n[docs]: /docs';
    expect(chunksOf(text)).toEqual([text]);
  });

  it('makes few chunks of a text with many short paragraphs', () => {
    const text = 'a\n\n'.repeat(50_000);
    expect(chunksOf(text).length).toBeLessThan(300);
    expect(chunksOf(text).join('\n')).toBe(text);
  });

  it('takes linear time to look for definitions', () => {
    const began = performance.now();
    chunksOf('[\n'.repeat(50_000));
    expect(performance.now() - began).toBeLessThan(1000);
  });
});
