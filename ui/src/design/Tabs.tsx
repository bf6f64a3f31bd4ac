import type { KeyboardEvent, ReactNode } from 'react';
import { useEffect, useId, useRef } from 'react';
import styles from './Tabs.module.css';

export interface Tab { id: string; label: string; count?: number; content: () => ReactNode }

/** Tabs with arrow keys; the content of the others is not rendered. */
export function Tabs({ tabs, active, onChange, label }: { tabs: Tab[]; active: string; onChange: (id: string) => void; label: string }) {
  const base = useId();
  const list = useRef<HTMLDivElement>(null);
  const at = Math.max(0, tabs.findIndex((tab) => tab.id === active));
  // Not `scrollIntoView`, which would move the page as well.
  useEffect(() => {
    const tab = list.current?.children[at];
    if (!list.current || !(tab instanceof HTMLElement)) return;
    const { offsetLeft: left, offsetWidth: width } = tab;
    const { scrollLeft: from, clientWidth: room } = list.current;
    if (left < from || left + width > from + room) list.current.scrollLeft = left - (room - width) / 2;
  }, [at]);
  const move = (event: KeyboardEvent) => {
    const next = { ArrowRight: at + 1, ArrowLeft: at - 1 + tabs.length, Home: 0, End: tabs.length - 1 }[event.key];
    const tab = next === undefined ? undefined : tabs[next % tabs.length];
    if (!tab) return;
    event.preventDefault();
    onChange(tab.id);
    list.current?.querySelector<HTMLElement>(`#${CSS.escape(`${base}-${tab.id}`)}`)?.focus();
  };
  return (
    <div className={styles.tabs}>
      <div ref={list} role="tablist" tabIndex={-1} aria-label={label} className={styles.list} onKeyDown={move}>
        {tabs.map((tab, index) => (
          <button key={tab.id} id={`${base}-${tab.id}`} type="button" role="tab" className={styles.tab} aria-selected={index === at} aria-controls={`${base}-panel`} tabIndex={index === at ? 0 : -1} onClick={() => onChange(tab.id)}>
            {tab.label}
            {tab.count !== undefined && <span className={styles.count}>{tab.count}</span>}
          </button>
        ))}
      </div>
      <div id={`${base}-panel`} role="tabpanel" aria-labelledby={`${base}-${tabs[at]?.id}`} className={styles.panel}>{tabs[at]?.content()}</div>
    </div>
  );
}
