//! Patterns: how often conversations move from one agent to another. Sums are in [`ways`].

mod ways;

use baton_core::store::{Hop, Pattern, Patterns, Pending, micros};
use baton_core::{StoreError, ThreadId, Usd};

use crate::feedback;
use crate::job::JobSubject;
use crate::tenant::Tenant;
use crate::threads;
use crate::tx::Tx;
use crate::value::{Row, params};
pub(crate) use ways::{Count, PatternKey, add, of_run};

/// Limit of one latency, about 35 years, so that sums fit their column.
const MOST_MS: u64 = 1 << 40;
/// Limit of one cost, about a million dollars, so that sums fit their column.
const MOST_NANOS: i64 = 1 << 50;

impl Patterns for Tenant {
    fn record_hop(&self, hop: Hop) -> Pending<'_, ()> {
        self.write(JobSubject::Thread(hop.thread_id), hop, |tx, hop| {
            Box::pin(async {
                let thread = threads::hold(tx, hop.thread_id, None).await?;
                record(tx, thread, std::slice::from_ref(hop)).await
            })
        })
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
        (tenant, thread_number, at, hop_id, run_id, kind, source, target, reason, query_class, success, latency_ms,
        cost_nanos)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
    ON CONFLICT (tenant, thread_number, at, hop_id) DO NOTHING";

/// Records hops of one run, in the thread with this number. The transaction must hold the thread's lock.
pub(crate) async fn record(tx: &Tx<'_>, thread: u64, hops: &[Hop]) -> Result<(), StoreError> {
    let Some(first) = hops.first() else { return Ok(()) };
    let ratings = feedback::of_run(tx, first.thread_id, first.run_id).await?;
    for hop in hops {
        record_one(tx, thread, hop, ratings).await?;
    }
    Ok(())
}

/// `ratings` are those given before this hop. They count once for each pattern of the run.
async fn record_one(tx: &Tx<'_>, thread: u64, hop: &Hop, mut ratings: (i64, i64)) -> Result<(), StoreError> {
    let latency = hop.latency_ms.min(MOST_MS);
    let cost = hop.cost.nanos().clamp(-MOST_NANOS, MOST_NANOS);
    let (reason, class) = (hop.reason.as_str(), hop.query_class.as_str());
    let (id, run) = (hop.hop_id, hop.run_id);
    let (kind, from, to, success) = (hop.kind, &hop.from, &hop.to, hop.success);
    let way = PatternKey::of(hop);
    if ratings != (0, 0) && of_run(tx, thread, hop.run_id).await?.contains(&way) {
        ratings = (0, 0);
    }
    let params = params![thread, hop.at, id, run, kind, from, to, reason, class, success, latency, cost];
    if tx.execute(HOP, params).await? == 0 {
        return Ok(());
    }
    let count = Count {
        hops: 1,
        successes: success.into(),
        latency_ms: i64::try_from(latency).unwrap_or(i64::MAX),
        cost_nanos: cost,
        ratings,
        last_at: micros(hop.at),
    };
    tx.to_close().count(way, count);
    Ok(())
}

async fn hops(tx: &Tx<'_>, thread: ThreadId) -> Result<Vec<Hop>, StoreError> {
    let number = threads::must_exist(tx, thread).await?;
    let sql = "SELECT hop_id, run_id, kind, source, target, reason, query_class, success, latency_ms, cost_nanos, at
        FROM hops
        WHERE tenant = $1 AND thread_number = $2
        ORDER BY at, hop_id";
    tx.query(sql, params![number]).await?.iter().map(|row| read_hop(thread, row)).collect()
}

fn read_hop(thread_id: ThreadId, row: &Row) -> Result<Hop, StoreError> {
    Ok(Hop {
        hop_id: row.parse(0)?,
        thread_id,
        run_id: row.parse(1)?,
        kind: row.choice(2)?,
        from: row.parse(3)?,
        to: row.parse(4)?,
        reason: row.text(5)?.to_owned(),
        query_class: row.text(6)?.to_owned(),
        success: row.int(7)? != 0,
        latency_ms: row.count(8)?,
        cost: Usd::from_nanos(row.int(9)?),
        at: row.time(10)?,
    })
}

async fn patterns(tx: &Tx<'_>) -> Result<Vec<Pattern>, StoreError> {
    let sql =
        "SELECT kind, source, target, query_class, count, successes, latency_ms, cost_nanos, liked, disliked, last_at
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
        liked: row.count(8)?,
        disliked: row.count(9)?,
        last_at: row.time(10)?,
    })
}
