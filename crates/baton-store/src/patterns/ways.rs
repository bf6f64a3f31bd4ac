//! The key of a pattern, and the sums over all its hops.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use baton_core::store::Hop;
use baton_core::{RunId, StoreError};

use crate::tx::Tx;
use crate::value::{Row, params, row_values};

/// The key of a pattern. Patterns are written in the order of these fields.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PatternKey {
    kind: String,
    from: String,
    to: String,
    query_class: String,
}

impl PatternKey {
    pub(super) fn of(hop: &Hop) -> Self {
        Self {
            kind: hop.kind.to_string(),
            from: hop.from.to_string(),
            to: hop.to.to_string(),
            // As it is stored, without NUL.
            query_class: hop.query_class.replace('\0', ""),
        }
    }

    fn read(row: &Row) -> Result<Self, StoreError> {
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

const OF_RUN: &str = "SELECT DISTINCT kind, source, target, query_class
    FROM hops
    WHERE tenant = $1 AND thread_number = $2 AND run_id = $3";

/// The distinct patterns of a run's hops. Reads all hops of its thread.
pub(crate) async fn of_run(tx: &Tx<'_>, thread: u64, run: RunId) -> Result<Vec<PatternKey>, StoreError> {
    tx.query(OF_RUN, params![thread, run]).await?.iter().map(PatternKey::read).collect()
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
        let plan = plan(OF_RUN);
        assert_eq!(plan[0], "SEARCH hops USING PRIMARY KEY (thread_number=? AND tenant=?)", "{plan:?}");
    }
}
