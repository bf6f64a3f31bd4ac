/** Shortcuts as the keyboard of this machine names them. */
const isMac = /Mac|iPhone|iPad/.test(navigator.platform);

/** `shortcut('K')` is "⌘K" on a Mac and "Ctrl K" elsewhere. */
export function shortcut(key: string, shift = false): string {
  return isMac ? `${shift ? '⇧' : ''}⌘${key}` : `Ctrl ${shift ? 'Shift ' : ''}${key}`;
}

/** Whether the event has the platform's command key. */
export function hasCommand(event: { metaKey: boolean; ctrlKey: boolean }): boolean {
  return isMac ? event.metaKey : event.ctrlKey;
}
