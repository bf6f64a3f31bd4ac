import { sentence } from '@/api/problem';
import { Button, ErrorNote, Notice } from '@/design';
import { count, plural } from '@/lib/format';
import { MOST_ROWS } from './exportAll';
import type { ExportState } from './useExport';

/** How far an export is, and how it ended. */
export function ExportStatus({ state, onDismiss }: { state: ExportState; onDismiss: () => void }) {
  if (!state) return null;
  const button = (label: string) => <Button size="small" kind="ghost" onClick={onDismiss}>{label}</Button>;
  switch (state.phase) {
    case 'running': return <Notice action={button('Cancel')}>Reading entries: {count(state.rows)} so far</Notice>;
    case 'failed': return <ErrorNote title="The export failed." action={button('Dismiss')}>{sentence(state.error)}</ErrorNote>;
    case 'done':
      return state.isCut
        ? <Notice tone="warning" action={button('Dismiss')}>The file holds the first {count(MOST_ROWS)} entries, and there are more. Narrow the filters or choose a shorter time.</Notice>
        : <Notice tone="success" action={button('Dismiss')}>Saved {plural(state.rows, 'entry', 'entries')}.</Notice>;
  }
}
