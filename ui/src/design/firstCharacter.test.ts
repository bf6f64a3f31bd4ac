import { expect, it } from 'vitest';
import { firstCharacter } from './firstCharacter';

it('keeps characters of several code points together', () => {
  expect(['Ann', ' ann', '👩‍👩‍👧‍👦 Family', 'é', 'مساعد', ''].map(firstCharacter)).toEqual(['A', 'a', '👩‍👩‍👧‍👦', 'é', 'م', '']);
});
