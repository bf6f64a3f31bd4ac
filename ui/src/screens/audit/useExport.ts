import { useEffect, useRef, useState } from 'react';
import { download, today } from '@/lib/download';
import { toJsonl } from '@/lib/jsonl';
import type { Filter } from './data';
import { readAll, toCsv } from './exportAll';

export type Format = 'jsonl' | 'csv';
export type ExportState = { phase: 'running'; rows: number } | { phase: 'done'; rows: number; isCut: boolean } | { phase: 'failed'; error: unknown } | undefined;

/** Reads every page of the filter and saves it as one file. Leaving the screen stops it. */
export function useExport(filter: Filter): { state: ExportState; start: (format: Format) => void; dismiss: () => void } {
  const [state, setState] = useState<ExportState>();
  const running = useRef<AbortController>(undefined);
  useEffect(() => () => running.current?.abort(), []);
  const start = async (format: Format) => {
    running.current?.abort();
    const abort = new AbortController();
    running.current = abort;
    const show = (next: ExportState) => abort.signal.aborted || setState(next);
    show({ phase: 'running', rows: 0 });
    try {
      const { entries, isCut } = await readAll({ filter, signal: abort.signal, onProgress: (rows) => show({ phase: 'running', rows }) });
      if (abort.signal.aborted) return;
      const text = format === 'csv' ? toCsv(entries) : toJsonl(entries);
      download(`baton-audit-${today()}.${format}`, format === 'csv' ? 'text/csv' : 'application/jsonl', [text]);
      show({ phase: 'done', rows: entries.length, isCut });
    } catch (error) {
      show({ phase: 'failed', error });
    }
  };
  const dismiss = () => {
    running.current?.abort();
    setState(undefined);
  };
  return { state, start: (format) => void start(format), dismiss };
}
