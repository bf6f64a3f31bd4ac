import { MessageSquare } from 'lucide-react';
import { Link } from 'wouter';
import type { RunDetail } from '@/api/types';
import { Card, ErrorNote, Notice, Time } from '@/design';
import { cost, count, duration, tokens } from '@/lib/format';
import { runErrorText } from '@/lib/runError';
import { useNow } from '@/lib/useNow';
import { isOver } from '@/run/status';
import { elapsed } from '../times';
import { Agent } from '../Agent';
import styles from './RunFacts.module.css';

/** Agent, times, tokens and cost of the run, and its error. */
export function RunFacts({ run }: { run: RunDetail }) {
  const now = useNow(isOver(run.status) ? 0 : 1_000);
  const took = elapsed(run, now);
  const { usage } = run;
  const detail = [`${count(usage.input_tokens)} in`, `${count(usage.output_tokens)} out`, usage.cached_tokens > 0 && `${count(usage.cached_tokens)} cached`, usage.cache_write_tokens > 0 && `${count(usage.cache_write_tokens)} written to cache`, usage.estimated && 'partly estimated'].filter(Boolean).join(' · ');
  return (
    <>
      <Card>
        <dl className={styles.facts}>
          <Fact name="Agent"><Agent id={run.agent} /></Fact>
          {run.answered_by && run.answered_by !== run.agent && <Fact name="Answered by"><Agent id={run.answered_by} /></Fact>}
          <Fact name="Started"><Time at={run.started_at ?? run.created_at} /></Fact>
          <Fact name="Duration">{took === undefined ? '–' : duration(took)}</Fact>
          <Fact name="Tokens" detail={detail}>{count(tokens(usage))}</Fact>
          <Fact name="Cost" detail={usage.cost_known ? undefined : 'a price is unknown'}>{cost(usage)}</Fact>
          <Fact name="User">{run.user_id}</Fact>
          {run.attempts > 1 && <Fact name="Attempts" detail="started again after a crash">{run.attempts}</Fact>}
          {run.limit && <Fact name="Limit" detail="it ended early">{run.limit}</Fact>}
          <Fact name="Conversation"><span className={styles.links}><Link href={`/threads/${run.thread_id}`} className={styles.link}><MessageSquare size={14} aria-hidden />Open</Link><Link href={`/runs?thread=${run.thread_id}`}>All its runs</Link></span></Fact>
        </dl>
      </Card>
      {run.error && <ErrorNote title={runErrorText(run.error.code) ?? 'This run failed.'}><span className={styles.cause}><code>{run.error.code}</code> {run.error.message}</span></ErrorNote>}
      {run.cancel && !isOver(run.status) && <Notice tone="warning">{run.cancel === 'stop' ? 'This run was asked to stop. It ends after one closing turn.' : 'This run was asked to end at once.'}</Notice>}
    </>
  );
}

function Fact({ name, detail, children }: { name: string; detail?: string | undefined; children: React.ReactNode }) {
  return (
    <div className={styles.fact}>
      <dt>{name}</dt>
      <dd>{children}{detail && <span className={styles.detail}>{detail}</span>}</dd>
    </div>
  );
}
