import { cleanup, renderHook } from '@testing-library/react';
import { afterEach, expect, it, vi } from 'vitest';
import type { ComposerState } from './useComposer';
import { usePrefill } from './usePrefill';

const fill = vi.fn();
const composer = { text: 'A draft', fill } as unknown as ComposerState;

afterEach(() => {
  cleanup();
  fill.mockClear();
});

it('fills a new conversation once and cleans the address', () => {
  history.replaceState(null, '', '/?prompt=Create%20a%20skill&agent=skills');
  const { rerender } = renderHook(() => usePrefill(true, composer));
  rerender();
  expect(fill.mock.calls).toEqual([['Create a skill', 'skills']]);
  expect(location.search).toBe('');
});

it('keeps the draft when only an agent is named', () => {
  history.replaceState(null, '', '/?agent=research');
  renderHook(() => usePrefill(true, composer));
  expect(fill.mock.calls).toEqual([['A draft', 'research']]);
});

it('leaves other conversations alone', () => {
  history.replaceState(null, '', '/threads/1?prompt=Hello');
  renderHook(() => usePrefill(false, composer));
  expect(fill).not.toHaveBeenCalled();
});
