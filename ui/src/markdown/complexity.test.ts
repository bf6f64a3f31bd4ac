import { describe, expect, it } from 'vitest';
import { isTooComplex } from './complexity';

const HOSTILE: Record<string, string> = {
  quotes: '>'.repeat(1000),
  'quotes behind a carriage return': `a\r${'>'.repeat(1000)}`,
  lists: '- '.repeat(1000) + 'a',
  'numbered lists': '1. '.repeat(1000) + 'a',
  'lists by indentation': Array.from({ length: 200 }, (_, at) => `${'  '.repeat(at)}- a`).join('\n'),
  'a wide table': `${'a|'.repeat(1000)}\n${'-|'.repeat(1000)}\n${'x\n'.repeat(500)}`,
  emphasis: '*_'.repeat(5000),
  'nested emphasis': `${'*'.repeat(5000)}a${'*'.repeat(5000)}`,
  brackets: '[a'.repeat(5000),
  addresses: 'a@'.repeat(5000),
  'emphasis in many paragraphs': `${'*_'.repeat(1000)}\n\n`.repeat(20),
  'a very long line': 'a'.repeat(300_000),
  'very many lines': '- a\n'.repeat(10_000),
  'emphasis behind a fence in a list item': `- a\n  \`\`\`\n\n${'*_'.repeat(5000)}`,
  'emphasis behind a fence in HTML': `<!--\n\`\`\`\n-->\n\n${'*_'.repeat(5000)}`,
  'emphasis behind a fence that is none': `\`\`\` a\`\n\n${'*_'.repeat(5000)}`,
};

const USUAL: Record<string, string> = {
  nothing: '',
  'nested lists': Array.from({ length: 12 }, (_, at) => `${'  '.repeat(at)}- **item** ${at}`).join('\n'),
  'a long table': `|a|b|c|d|e|f|\n|-|-|-|-|-|-|\n${'|x|y|z|*1*|`2`|3|\n'.repeat(500)}`,
  'a long text': 'Some **words** with a [link](https://example.com) and `code`.\n\n'.repeat(1000),
  'a line of a merge conflict': '>>>>>>> main',
  'a thematic break': '-'.repeat(200),
  'long code': `\`\`\`json\n${'{"a": [1, 2, {"b": ["*", "_"]}]}|\n'.repeat(3000)}\`\`\``,
  'indented text': `${' '.repeat(300)}text`,
};

describe('isTooComplex', () => {
  it.each(Object.entries(HOSTILE))('finds %s', (_, text) => expect(isTooComplex(text)).toBe(true));
  it.each(Object.entries(USUAL))('accepts %s', (_, text) => expect(isTooComplex(text)).toBe(false));

  it('takes linear time', () => {
    const began = performance.now();
    for (const text of ['1'.repeat(200_000), ' '.repeat(200_000), '> '.repeat(100_000), '`'.repeat(200_000), '\n'.repeat(200_000), '[\n'.repeat(100_000)]) isTooComplex(text);
    expect(performance.now() - began).toBeLessThan(2000);
  });
});
