//! Hops between agents, and the sums over them.
//!
//! An append only inserts hops. [`settle`] adds them to the sums of `patterns` later, so that runs of one tenant do not update the
//! same rows. Until then they are in the index `hops_unsettled`, and [`patterns`] adds them to what it returns.

mod experience;
mod settle;
mod ways;
mod weights;

use std::collections::BTreeMap;

use baton_core::choice::Choice as _;
use baton_core::learning::Experience;
use baton_core::store::{Hop, HopKind, HopOutcome, Pattern, Patterns, Pending, micros};
use baton_core::{RunId, StoreError, ThreadId, Usd};
use jiff::Timestamp;
use uuid::Uuid;

use crate::insert::{Changes, ColumnKind, Insert};
use crate::job::JobSubject;
use crate::tenant::Tenant;
use crate::threads;
use crate::tx::Tx;
use crate::value::{Row, SqlValue, params, row_values};
pub(crate) use experience::correct;
pub(crate) use settle::settle_thread;
pub(crate) use ways::{Count, PatternKey, add, settled_of_run};

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
        self.last_hops(thread, u32::MAX)
    }

    fn last_hops(&self, thread: ThreadId, limit: u32) -> Pending<'_, Vec<Hop>> {
        self.read((thread, limit), |tx, (thread, limit)| Box::pin(last_hops(tx, *thread, *limit)))
    }

    fn patterns(&self) -> Pending<'_, Vec<Pattern>> {
        self.read((), |tx, ()| Box::pin(patterns(tx)))
    }

    fn experience(&self) -> Pending<'_, Vec<Experience>> {
        self.read((), |tx, ()| Box::pin(experience::experience(tx)))
    }

    fn settle_hops(&self, before: Timestamp, limit: u32) -> Pending<'_, u64> {
        Box::pin(async move {
            let until = self
                .read((before, limit), |tx, (before, limit)| Box::pin(settle::until(tx, *before, *limit)));
            let Some(until) = until.await? else { return Ok(0) };
            self.write(JobSubject::Tenant, until, |tx, until| Box::pin(settle::settle(tx, *until))).await
        })
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
        ("outcome", ColumnKind::Int),
        ("latency_ms", ColumnKind::Int),
        ("cost_nanos", ColumnKind::Int),
        ("settled", ColumnKind::Int),
        ("request", ColumnKind::Int),
    ],
    "ON CONFLICT (tenant, thread_number, at, hop_id) DO NOTHING",
);

/// A handoff that ended, was resumed and ends again stays one hop, whose outcome is that of its last end.
const PUT: &str = "
    INSERT INTO hops (tenant, thread_number, at, hop_id, run_id, kind, source, target, reason, query_class, outcome,
        latency_ms, cost_nanos, settled, request)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
    ON CONFLICT (tenant, thread_number, at, hop_id) DO UPDATE
    SET outcome = excluded.outcome, latency_ms = excluded.latency_ms, cost_nanos = excluded.cost_nanos";

/// Writes the hop of a handoff that has ended.
pub(crate) async fn put(tx: &Tx<'_>, thread: u64, hop: &Hop) -> Result<(), StoreError> {
    tx.execute(PUT, &values(thread, hop)).await.map(drop)
}

/// Records a hop, unless it was recorded before. The transaction must hold the thread's lock.
async fn record(tx: &Tx<'_>, thread: u64, hop: &Hop) -> Result<(), StoreError> {
    let mut changes = Changes::of(hop.thread_id);
    add_hops(&mut changes, thread, std::slice::from_ref(hop));
    tx.write(changes).await
}

/// Adds hops of one thread, which has this number, to `changes`: one insert, whatever their number.
pub(crate) fn add_hops(changes: &mut Changes, thread: u64, hops: &[Hop]) {
    changes.insert(&INSERT, hops.iter().map(|hop| values(thread, hop)).collect());
}

fn count(hop: &Hop) -> Count {
    Count {
        hops: 1,
        successes: (hop.outcome == HopOutcome::Completed).into(),
        latency_ms: i64::try_from(hop.latency_ms.min(MOST_MS)).unwrap_or(i64::MAX),
        cost_nanos: hop.cost.nanos().clamp(-MOST_NANOS, MOST_NANOS),
        last_at: micros(hop.at),
        ..Count::default()
    }
}

/// Numbers for the outcomes, which are shorter than their words.
fn outcome_number(outcome: HopOutcome) -> i64 {
    match outcome {
        HopOutcome::Failed => 0,
        HopOutcome::Completed => 1,
        HopOutcome::Cancelled => 2,
        HopOutcome::Declined => 3,
    }
}

fn read_outcome(number: i64) -> Result<HopOutcome, StoreError> {
    let found = HopOutcome::ALL.iter().find(|(_, outcome)| outcome_number(*outcome) == number);
    found
        .map(|(_, outcome)| *outcome)
        .ok_or_else(|| StoreError::Unreadable(format!("the outcome {number} of a hop")))
}

/// The parameters of [`INSERT`] and [`PUT`].
fn values(thread: u64, hop: &Hop) -> Vec<SqlValue> {
    let Count { latency_ms, cost_nanos, .. } = count(hop);
    let (kind, from, to, outcome) = (hop.kind, &hop.from, &hop.to, outcome_number(hop.outcome));
    let (reason, class) = (hop.reason.as_str(), hop.query_class.as_str());
    let run = hop.run_id.map_or(Uuid::nil(), RunId::as_uuid);
    let mut values = row_values![thread, hop.at, hop.hop_id, run, kind, from, to, reason, class];
    values.extend(row_values![outcome, latency_ms, cost_nanos, 0_i64, hop.request.cast_signed()]);
    values
}

const LAST_HOPS: &str =
    "SELECT hop_id, run_id, kind, source, target, reason, query_class, outcome, latency_ms, cost_nanos, at, request
    FROM hops
    WHERE tenant = $1 AND thread_number = $2
    ORDER BY at DESC, hop_id DESC
    LIMIT $3";

async fn last_hops(tx: &Tx<'_>, thread: ThreadId, limit: u32) -> Result<Vec<Hop>, StoreError> {
    let number = threads::must_exist(tx, thread).await?;
    let rows = tx.query(LAST_HOPS, params![number, limit]).await?;
    rows.iter().rev().map(|row| read_hop(thread, row)).collect()
}

fn read_hop(thread_id: ThreadId, row: &Row) -> Result<Hop, StoreError> {
    Ok(Hop {
        hop_id: row.parse(0)?,
        thread_id,
        run_id: Some(row.parse::<Uuid>(1)?).filter(|run| !run.is_nil()).map(RunId::from_uuid),
        kind: row.choice(2)?,
        from: row.parse(3)?,
        to: row.parse(4)?,
        reason: row.text(5)?.to_owned(),
        query_class: row.text(6)?.to_owned(),
        outcome: read_outcome(row.int(7)?)?,
        latency_ms: row.count(8)?,
        cost: Usd::from_nanos(row.int(9)?),
        at: row.time(10)?,
        request: row.int(11)?.cast_unsigned(),
    })
}

async fn patterns(tx: &Tx<'_>) -> Result<Vec<Pattern>, StoreError> {
    let sql =
        "SELECT kind, source, target, query_class, count, successes, latency_ms, cost_nanos, liked, disliked, last_at
        FROM patterns
        WHERE tenant = $1";
    let mut sums = settle::unsettled(tx).await?;
    for row in tx.query(sql, &[]).await? {
        let (key, count) = (PatternKey::read(&row)?, Count::read(&row)?);
        *sums.entry(key).or_default() += count;
    }
    sorted(sums)
}

/// Most frequent first.
fn sorted(sums: BTreeMap<PatternKey, Count>) -> Result<Vec<Pattern>, StoreError> {
    let mut patterns: Vec<Pattern> =
        sums.into_iter().map(|(key, count)| pattern(key, count)).collect::<Result<_, _>>()?;
    // Stable: ties stay in the order of keys.
    patterns.sort_by_key(|pattern| std::cmp::Reverse(pattern.count));
    Ok(patterns)
}

fn pattern(key: PatternKey, count: Count) -> Result<Pattern, StoreError> {
    let unreadable = |word: &str| StoreError::Unreadable(format!("`{word}` of a pattern"));
    let agent = |name: &str| baton_core::AgentName::parse(name).map_err(|_| unreadable(name));
    let whole = |number: i64| u64::try_from(number).unwrap_or_default();
    Ok(Pattern {
        kind: HopKind::parse(&key.kind).ok_or_else(|| unreadable(&key.kind))?,
        from: agent(&key.from)?,
        to: agent(&key.to)?,
        query_class: key.query_class,
        count: whole(count.hops),
        successes: whole(count.successes),
        total_latency_ms: whole(count.latency_ms),
        total_cost: Usd::from_nanos(count.cost_nanos),
        liked: whole(count.ratings.0),
        disliked: whole(count.ratings.1),
        last_at: Timestamp::from_microsecond(count.last_at).map_err(|_| unreadable("last_at"))?,
    })
}
