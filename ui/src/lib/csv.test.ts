import { expect, test } from 'vitest';
import { csv } from './csv';

test('quotes separators, quotes and line breaks', () => {
  expect(csv(['a', 'b'], [['x, y', 'say "hi"'], ['two\nlines', 3]])).toBe('a,b\r\n"x, y","say ""hi"""\r\n"two\nlines",3\r\n');
});

test('disarms formulas but keeps numbers', () => {
  expect(csv(['a'], [['=1+1'], ['@sum'], [-4], [undefined], [true]])).toBe("a\r\n'=1+1\r\n'@sum\r\n-4\r\n\r\ntrue\r\n");
});

test('disarms formulas behind what other languages separate cells with', () => {
  expect(csv(['a'], [['x;=1+1'], ['x; @sum'], ['＝1+1'], [' =1'], ['\t=1'], ['a;b-c']])).toBe(`a\r\n"x;'=1+1"\r\n"x; '@sum"\r\n'＝1+1\r\n '=1\r\n"'\t'=1"\r\n"a;b-c"\r\n`);
});
