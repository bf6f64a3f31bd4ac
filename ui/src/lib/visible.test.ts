import { expect, test } from 'vitest';
import { visible } from './visible';

test('shows characters that hide or turn around what follows', () => {
  expect(visible('invoice\u202efdp.exe')).toBe('invoice\\u202efdp.exe');
  expect(visible('a\u200bb\u2066c\ufeff\u0007\u{e0041}')).toBe('a\\u200bb\\u2066c\\ufeff\\u0007\\u{e0041}');
});

test('leaves what people write as it is', () => {
  for (const text of ['', 'two\r\n\tlines', 'مرحبا', 'می‌خواهم', '👩‍👧 ok', 'naïve – “quoted”']) expect(visible(text)).toBe(text);
});
