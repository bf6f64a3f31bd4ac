//! Which ways conversations take between agents.

use baton_core::store::{Hop, Pattern, Patterns, Pending};
use baton_core::{StoreError, ThreadId, Usd};

use crate::job::About;
use crate::tenant::Tenant;
use crate::threads;
use crate::tx::Tx;
use crate::value::{Row, params};

/// Longer ones are cut, so that their sums stay in their column: about 35 years.
const MOST_MS: u64 = 1 << 40;
/// The same for costs: a million dollars.
const MOST_NANOS: i64 = 1 << 50;

impl Patterns for Tenant {
    fn record_hop(&self, hop: Hop) -> Pending<'_, ()> {
        self.write(About::Thread(hop.thread_id), hop, |tx, hop| Box::pin(record(tx, hop)))
    }

    fn hops(&self, thread: ThreadId) -> Pending<'_, Vec<Hop>> {
        self.read(thread, |tx, thread| Box::pin(hops(tx, *thread)))
    }

    fn patterns(&self) -> Pending<'_, Vec<Pattern>> {
        self.read((), |tx, ()| Box::pin(patterns(tx)))
    }
}

const HOP: &str = "
    INSERT INTO hops
        (tenant, hop_id, thread_id, run_id, kind, source, target, reason, query_class, success, latency_ms,
        cost_nanos, at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
    ON CONFLICT (tenant, hop_id) DO NOTHING";

const COUNT: &str = "
    INSERT INTO patterns
        (tenant, kind, source, target, query_class, count, successes, latency_ms, cost_nanos, last_at)
    VALUES ($1, $2, $3, $4, $5, 1, $6, $7, $8, $9)
    ON CONFLICT (tenant, kind, source, target, query_class) DO UPDATE
    SET count = patterns.count + 1,
        successes = patterns.successes + excluded.successes,
        latency_ms = patterns.latency_ms + excluded.latency_ms,
        cost_nanos = patterns.cost_nanos + excluded.cost_nanos,
        last_at = CASE WHEN patterns.last_at > excluded.last_at THEN patterns.last_at ELSE excluded.last_at END";

async fn record(tx: &Tx<'_>, hop: &Hop) -> Result<(), StoreError> {
    threads::touch(tx, hop.thread_id).await?;
    let (from, to, class) = (&hop.from, &hop.to, hop.query_class.as_str());
    let latency = hop.latency_ms.min(MOST_MS);
    let cost = hop.cost.nanos().clamp(-MOST_NANOS, MOST_NANOS);
    let (kind, reason, success, at) = (hop.kind, hop.reason.as_str(), hop.success, hop.at);
    let params = params![
        hop.hop_id,
        hop.thread_id,
        hop.run_id,
        kind,
        from,
        to,
        reason,
        class,
        success,
        latency,
        cost,
        at
    ];
    let is_new = tx.execute(HOP, params).await? > 0;
    if is_new {
        tx.execute(COUNT, params![kind, from, to, class, success, latency, cost, at]).await?;
    }
    Ok(())
}

async fn hops(tx: &Tx<'_>, thread: ThreadId) -> Result<Vec<Hop>, StoreError> {
    threads::must_exist(tx, thread).await?;
    let sql =
        "SELECT hop_id, thread_id, run_id, kind, source, target, reason, query_class, success, latency_ms,
            cost_nanos, at
        FROM hops
        WHERE tenant = $1 AND thread_id = $2
        ORDER BY at, hop_id";
    tx.query(sql, params![thread]).await?.iter().map(read_hop).collect()
}

fn read_hop(row: &Row) -> Result<Hop, StoreError> {
    Ok(Hop {
        hop_id: row.parse(0)?,
        thread_id: row.parse(1)?,
        run_id: row.parse(2)?,
        kind: row.choice(3)?,
        from: row.parse(4)?,
        to: row.parse(5)?,
        reason: row.text(6)?.to_owned(),
        query_class: row.text(7)?.to_owned(),
        success: row.int(8)? != 0,
        latency_ms: row.count(9)?,
        cost: Usd::from_nanos(row.int(10)?),
        at: row.time(11)?,
    })
}

async fn patterns(tx: &Tx<'_>) -> Result<Vec<Pattern>, StoreError> {
    let sql = "SELECT kind, source, target, query_class, count, successes, latency_ms, cost_nanos, last_at
        FROM patterns
        WHERE tenant = $1
        ORDER BY count DESC, kind, source, target, query_class";
    tx.query(sql, &[]).await?.iter().map(read_pattern).collect()
}

fn read_pattern(row: &Row) -> Result<Pattern, StoreError> {
    Ok(Pattern {
        kind: row.choice(0)?,
        from: row.parse(1)?,
        to: row.parse(2)?,
        query_class: row.text(3)?.to_owned(),
        count: row.count(4)?,
        successes: row.count(5)?,
        total_latency_ms: row.count(6)?,
        total_cost: Usd::from_nanos(row.int(7)?),
        last_at: row.time(8)?,
    })
}
