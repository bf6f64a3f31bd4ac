import { ArrowDown } from 'lucide-react';
import { memo, useMemo, type ReactNode } from 'react';
import { Button, cx, ErrorNote } from '@/design';
import type { ThreadHandle } from '@/thread/useThread';
import { AssistantMessage } from './AssistantMessage';
import { blocksOf, isSameBlock, type Block } from './blocks';
import { Divider } from './Divider';
import { entriesOf, type Entry } from './entries';
import styles from './MessageList.module.css';
import { ChatRequest } from './ChatRequest';
import { RunNote } from './RunNote';
import { SubAgents } from './SubAgents';
import type { StickToBottom } from './useStickToBottom';
import { UserMessage } from './UserMessage';
import { useOlderMessages } from './useOlderMessages';

/** The conversation. It follows its end unless the reader has scrolled up. */
export function MessageList({ handle, scroll, children }: { handle: ThreadHandle; scroll: StickToBottom; children?: ReactNode }) {
  const { state, loadOlder } = handle;
  const { items, runs, activeRun, handoff } = state;
  const entries = useMemo(() => entriesOf({ items, runs, activeRun, handoff, hasOlder: false }), [items, runs, activeRun, handoff]);
  const blocks = useMemo(() => blocksOf(entries), [entries]);
  const older = useOlderMessages({ scroller: scroll.scroller, firstKey: entries[0]?.key, hasOlder: state.hasOlder, load: loadOlder });
  return (
    <div className={styles.frame}>
      {/* A scrolling region has to be reachable by keyboard. */}
      {/* eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <div ref={scroll.scroller} className={styles.scroller} role="region" aria-label="Conversation" tabIndex={0}>
        <div ref={scroll.content} className={styles.column}>
          {state.hasOlder && (
            <div ref={older.button} className={styles.older}>
              {older.problem && <ErrorNote>{older.problem}</ErrorNote>}
              <Button kind="ghost" size="small" busy={older.isLoading} onClick={() => void older.older()}>{older.isLoading ? 'Loading earlier messages…' : 'Load earlier messages'}</Button>
            </div>
          )}
          {blocks.map((block, at) => <Rows key={block.key} block={block} isLazy={at < blocks.length - LAID_OUT} />)}
          {children}
        </div>
      </div>
      {!scroll.isAtEnd && <Button size="small" icon={ArrowDown} className={styles.jump} onClick={scroll.toEnd}>Jump to latest</Button>}
    </div>
  );
}

/** The newest blocks are always laid out, so that the end does not jump. */
const LAID_OUT = 2;

const Rows = memo(function Rows({ block, isLazy }: { block: Block; isLazy: boolean }) {
  return (
    <div className={cx(styles.block, isLazy && styles.lazy)}>
      {block.entries.map((entry) => <div key={entry.key} data-row className={styles.entry}><Row entry={entry} /></div>)}
    </div>
  );
}, (one, other) => one.isLazy === other.isLazy && isSameBlock(one.block, other.block));

function Row({ entry }: { entry: Entry }) {
  switch (entry.kind) {
    case 'divider': return <Divider item={entry.item} />;
    case 'request': return <ChatRequest item={entry.item} />;
    case 'agents': return <SubAgents run={entry.run} />;
    case 'state': return <RunNote run={entry.run} agent={entry.agent} question={entry.question} open={entry.open} />;
    case 'message':
      if (entry.item.role === 'user') return <UserMessage item={entry.item} isQueued={entry.isQueued} isRemoved={entry.run?.isRemoved === true && entry.run.status === 'cancelled'} />;
      // What a run is doing matters to its last text only; the others are not rendered again for it.
      return <AssistantMessage item={entry.item} run={entry.closesRun ? entry.run : undefined} question={entry.closesRun ? entry.question : undefined} closesRun={entry.closesRun} />;
  }
}
