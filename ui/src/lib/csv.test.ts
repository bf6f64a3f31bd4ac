import { expect, test } from 'vitest';
import { csv } from './csv';

test('quotes separators, quotes and line breaks', () => {
  expect(csv(['a', 'b'], [['x, y', 'say "hi"'], ['two\nlines', 3]])).toBe('a,b\r\n"x, y","say ""hi"""\r\n"two\nlines",3\r\n');
});

test('disarms formulas but keeps numbers', () => {
  expect(csv(['a'], [['=1+1'], ['@sum'], [-4], [undefined], [true]])).toBe("a\r\n'=1+1\r\n'@sum\r\n-4\r\n\r\ntrue\r\n");
});
