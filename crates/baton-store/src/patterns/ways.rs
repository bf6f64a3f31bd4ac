//! The key of a pattern, and the sums over all its hops.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::AddAssign;

use baton_core::{RunId, StoreError};

use crate::tx::Tx;
use crate::value::{Row, params, row_values};

/// The key of a pattern. Patterns are written in the order of these fields.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct PatternKey {
    pub(super) kind: String,
    pub(super) from: String,
    pub(super) to: String,
    pub(super) query_class: String,
}

impl PatternKey {
    /// From the first four columns.
    pub(super) fn read(row: &Row) -> Result<Self, StoreError> {
        let text = |at| row.text(at).map(str::to_owned);
        Ok(Self { kind: text(0)?, from: text(1)?, to: text(2)?, query_class: text(3)? })
    }
}

/// An increment of a pattern's sums.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Count {
    pub(crate) hops: i64,
    pub(crate) successes: i64,
    pub(crate) latency_ms: i64,
    pub(crate) cost_nanos: i64,
    /// Good and bad ratings. Negative if a user changed a rating.
    pub(crate) ratings: (i64, i64),
    pub(crate) last_at: i64,
}

impl Count {
    /// From the columns after those of the key, as a pattern is stored.
    pub(super) fn read(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            hops: row.int(4)?,
            successes: row.int(5)?,
            latency_ms: row.int(6)?,
            cost_nanos: row.int(7)?,
            ratings: (row.int(8)?, row.int(9)?),
            last_at: row.int(10)?,
        })
    }
}

impl AddAssign for Count {
    fn add_assign(&mut self, other: Self) {
        self.hops += other.hops;
        self.successes += other.successes;
        self.latency_ms = self.latency_ms.saturating_add(other.latency_ms);
        self.cost_nanos = self.cost_nanos.saturating_add(other.cost_nanos);
        self.ratings.0 += other.ratings.0;
        self.ratings.1 += other.ratings.1;
        self.last_at = self.last_at.max(other.last_at);
    }
}

const SETTLED_OF_RUN: &str = "SELECT kind, source, target, query_class
    FROM hops
    WHERE tenant = $1 AND thread_number = $2 AND run_id = $3 AND settled = 1";

/// Waits for a transaction that settles hops of the run.
const LOCKED_OF_RUN: &str = "SELECT kind, source, target, query_class, settled
    FROM hops
    WHERE tenant = $1 AND thread_number = $2 AND run_id = $3
    FOR UPDATE";

/// The distinct patterns of a run's hops that are in the sums. Reads all hops of its thread. On PostgreSQL the others are locked, so
/// that the transaction that settles them finds what this one writes.
pub(crate) async fn settled_of_run(
    tx: &Tx<'_>,
    thread: u64,
    run: RunId,
) -> Result<BTreeSet<PatternKey>, StoreError> {
    let rows = if tx.is_postgres() {
        let mut rows = tx.query(LOCKED_OF_RUN, params![thread, run]).await?;
        let mut settled = Vec::new();
        for row in rows.drain(..) {
            if row.int(4)? == 1 {
                settled.push(row);
            }
        }
        settled
    } else {
        tx.query(SETTLED_OF_RUN, params![thread, run]).await?
    };
    rows.iter().map(PatternKey::read).collect()
}

const ADD: &str = "
    INSERT INTO patterns
        (tenant, kind, source, target, query_class, count, successes, latency_ms, cost_nanos, liked, disliked, last_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
    ON CONFLICT (tenant, kind, source, target, query_class) DO UPDATE
    SET count = patterns.count + excluded.count,
        successes = patterns.successes + excluded.successes,
        latency_ms = patterns.latency_ms + excluded.latency_ms,
        cost_nanos = patterns.cost_nanos + excluded.cost_nanos,
        liked = patterns.liked + excluded.liked,
        disliked = patterns.disliked + excluded.disliked,
        last_at = CASE WHEN patterns.last_at > excluded.last_at THEN patterns.last_at ELSE excluded.last_at END";

/// Adds in key order, so that transactions updating the same patterns do not deadlock.
pub(crate) async fn add(tx: &Tx<'_>, counts: BTreeMap<PatternKey, Count>) -> Result<(), StoreError> {
    let rows = counts.into_iter().map(|(way, count)| {
        let PatternKey { kind, from, to, query_class } = way;
        let Count { hops, successes, latency_ms, cost_nanos, ratings: (liked, disliked), last_at } = count;
        let way = row_values![kind, from, to, query_class, hops, successes, latency_ms, cost_nanos];
        [way.as_slice(), params![liked, disliked, last_at]].concat()
    });
    tx.execute_each(ADD, rows).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::history::tests::plan;

    #[test]
    fn the_ways_of_a_run_are_found_in_its_thread() {
        let plan = plan(SETTLED_OF_RUN);
        assert_eq!(plan[0], "SEARCH hops USING PRIMARY KEY (thread_number=? AND tenant=?)", "{plan:?}");
    }
}
