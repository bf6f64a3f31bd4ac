//! Patterns: how often conversations move from one agent to another. Sums are in [`ways`].

mod ways;

use std::collections::BTreeSet;

use baton_core::store::{Hop, Pattern, Patterns, Pending, micros};
use baton_core::{StoreError, ThreadId, Usd};

use crate::feedback;
use crate::insert::{Changes, ColumnKind, Insert};
use crate::job::JobSubject;
use crate::tenant::Tenant;
use crate::threads;
use crate::tx::Tx;
use crate::value::{Row, SqlValue, params, row_values};
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
                record(tx, thread, hop).await
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

static INSERT: Insert = Insert::new(
    "hops",
    &[
        ("thread_number", ColumnKind::Int),
        ("at", ColumnKind::Int),
        ("hop_id", ColumnKind::Uuid),
        ("run_id", ColumnKind::Uuid),
        ("kind", ColumnKind::Text),
        ("source", ColumnKind::Text),
        ("target", ColumnKind::Text),
        ("reason", ColumnKind::Text),
        ("query_class", ColumnKind::Text),
        ("success", ColumnKind::Int),
        ("latency_ms", ColumnKind::Int),
        ("cost_nanos", ColumnKind::Int),
    ],
    "ON CONFLICT (tenant, thread_number, at, hop_id) DO NOTHING",
);

const IS_KNOWN: &str =
    "SELECT 1 FROM hops WHERE tenant = $1 AND thread_number = $2 AND at = $3 AND hop_id = $4";

/// Records a hop, unless it was recorded before. The transaction must hold the thread's lock.
async fn record(tx: &Tx<'_>, thread: u64, hop: &Hop) -> Result<(), StoreError> {
    if tx.first(IS_KNOWN, params![thread, hop.at, hop.hop_id]).await?.is_some() {
        return Ok(());
    }
    let mut changes = Changes::of(hop.thread_id);
    add_hops(tx, &mut changes, thread, std::slice::from_ref(hop)).await?;
    tx.write(changes).await
}

/// Adds new hops of one run, in the thread with this number, to `changes`. The transaction must hold the thread's lock.
pub(crate) async fn add_hops(
    tx: &Tx<'_>,
    changes: &mut Changes,
    thread: u64,
    hops: &[Hop],
) -> Result<(), StoreError> {
    let Some(first) = hops.first() else { return Ok(()) };
    // Those given before these hops. They count once for each pattern of the run.
    let ratings = feedback::of_run(tx, first.thread_id, first.run_id).await?;
    let mut rated = BTreeSet::new();
    if ratings != (0, 0) {
        rated.extend(of_run(tx, thread, first.run_id).await?);
    }
    for hop in hops {
        let way = PatternKey::of(hop);
        let ratings = if ratings != (0, 0) && rated.insert(way.clone()) { ratings } else { (0, 0) };
        tx.to_close().count(way, Count { ratings, ..count(hop) });
    }
    changes.insert(&INSERT, hops.iter().map(|hop| values(thread, hop)).collect());
    Ok(())
}

fn count(hop: &Hop) -> Count {
    Count {
        hops: 1,
        successes: hop.success.into(),
        latency_ms: i64::try_from(hop.latency_ms.min(MOST_MS)).unwrap_or(i64::MAX),
        cost_nanos: hop.cost.nanos().clamp(-MOST_NANOS, MOST_NANOS),
        last_at: micros(hop.at),
        ..Count::default()
    }
}

/// The parameters of [`INSERT`].
fn values(thread: u64, hop: &Hop) -> Vec<SqlValue> {
    let Count { latency_ms, cost_nanos, .. } = count(hop);
    let (kind, from, to, success) = (hop.kind, &hop.from, &hop.to, hop.success);
    let (reason, class) = (hop.reason.as_str(), hop.query_class.as_str());
    let mut values = row_values![thread, hop.at, hop.hop_id, hop.run_id, kind, from, to, reason, class];
    values.extend(row_values![success, latency_ms, cost_nanos]);
    values
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
