//! Adds hops to the sums of their patterns, some time after they were written.

use std::collections::{BTreeMap, HashSet};

use baton_core::StoreError;
use jiff::Timestamp;
use uuid::Uuid;

use super::experience::{self, Lesson, Requests};
use super::ways::{Count, PatternKey};
use crate::feedback;
use crate::tx::Tx;
use crate::value::{Row, params};

/// A hop as it is added to a pattern.
struct Unsettled {
    key: PatternKey,
    run: Uuid,
    count: Count,
}

/// The patterns of runs for which the ratings of the run are counted already.
type Rated = HashSet<(Uuid, PatternKey)>;

macro_rules! columns {
    () => {
        "kind, source, target, query_class, run_id, outcome, latency_ms, cost_nanos, at, request, thread_number, hop_id"
    };
}

/// Patterns of rated runs that a settled hop has counted, for the unsettled hops that `$which` selects.
macro_rules! rated {
    ($which:literal) => {
        concat!(
            "SELECT s.kind, s.source, s.target, s.query_class, s.run_id
            FROM hops AS h
            JOIN hops AS s ON s.tenant = $1 AND s.thread_number = h.thread_number AND s.run_id = h.run_id AND s.settled = 1
            WHERE h.tenant = $1 AND h.settled = 0 AND ",
            $which,
            " AND EXISTS (SELECT 1 FROM feedback AS f WHERE f.tenant = $1 AND f.run_id = h.run_id)"
        )
    };
}

impl Unsettled {
    fn read(row: &Row) -> Result<Self, StoreError> {
        let count = Count {
            hops: 1,
            successes: (row.int(5)? == 1).into(),
            latency_ms: row.int(6)?,
            cost_nanos: row.int(7)?,
            last_at: row.int(8)?,
            ..Count::default()
        };
        Ok(Self { key: PatternKey::read(row)?, run: row.parse(4)?, count })
    }
}

const UNSETTLED: &str = concat!("SELECT ", columns!(), " FROM hops WHERE tenant = $1 AND settled = 0");
const RATED: &str = rated!("h.at <= $2");

/// The sums over the hops that are not in `patterns` yet.
pub(super) async fn unsettled(tx: &Tx<'_>) -> Result<BTreeMap<PatternKey, Count>, StoreError> {
    let hops = tx.query(UNSETTLED, &[]).await?;
    if hops.is_empty() {
        return Ok(BTreeMap::new());
    }
    let rated = rated(&tx.query(RATED, params![i64::MAX]).await?)?;
    sums(tx, &hops, rated).await
}

/// The time up to which the oldest `$3` hops are settled.
const UNTIL: &str = "SELECT max(at) FROM (
        SELECT at FROM hops WHERE tenant = $1 AND settled = 0 AND at < $2 ORDER BY at LIMIT $3
    ) AS oldest";

const SETTLE: &str = concat!(
    "UPDATE hops SET settled = 1 WHERE tenant = $1 AND settled = 0 AND at <= $2 RETURNING ",
    columns!()
);

/// The time up to which to settle the oldest hops, about `limit`: those that began at the same time are settled together.
pub(super) async fn until(tx: &Tx<'_>, before: Timestamp, limit: u32) -> Result<Option<i64>, StoreError> {
    let row = tx.first(UNTIL, params![before, limit]).await?;
    Ok(row.map(|row| row.optional(0, Row::int)).transpose()?.flatten())
}

pub(super) async fn settle(tx: &Tx<'_>, until: i64) -> Result<u64, StoreError> {
    let rated = rated(&tx.query(RATED, params![until]).await?)?;
    let requests = Requests::until(tx, until).await?;
    let weights = experience::settled_weights(tx, until).await?;
    let hops = tx.query(SETTLE, params![until]).await?;
    add_to_sums(tx, &hops, rated).await?;
    experience::store(tx, &Lesson::read_all(&hops)?, &requests, &weights).await?;
    Ok(hops.len() as u64)
}

const RATED_OF_THREAD: &str = rated!("h.thread_number = $2");
const SETTLE_THREAD: &str = concat!(
    "UPDATE hops SET settled = 1 WHERE tenant = $1 AND thread_number = $2 AND settled = 0 RETURNING ",
    columns!()
);

/// Settles the hops of a thread that is about to be deleted: the sums outlive it. Nothing is learnt from them, because it is not known yet
/// whether the user is served; and who creates and deletes threads would weigh more than others.
pub(crate) async fn settle_thread(tx: &Tx<'_>, thread: u64) -> Result<(), StoreError> {
    let rated = rated(&tx.query(RATED_OF_THREAD, params![thread]).await?)?;
    let hops = tx.query(SETTLE_THREAD, params![thread]).await?;
    add_to_sums(tx, &hops, rated).await
}

fn rated(rows: &[Row]) -> Result<Rated, StoreError> {
    rows.iter().map(|row| Ok((row.parse(4)?, PatternKey::read(row)?))).collect()
}

async fn add_to_sums(tx: &Tx<'_>, hops: &[Row], rated: Rated) -> Result<(), StoreError> {
    for (key, count) in sums(tx, hops, rated).await? {
        tx.to_close().count(key, count);
    }
    Ok(())
}

/// The sums over `hops`, with the ratings of their runs. The ratings of a run count once for each of its patterns.
async fn sums(
    tx: &Tx<'_>,
    hops: &[Row],
    mut rated: Rated,
) -> Result<BTreeMap<PatternKey, Count>, StoreError> {
    let hops: Vec<Unsettled> = hops.iter().map(Unsettled::read).collect::<Result<_, _>>()?;
    // After the hops are locked: a rating that comes later waits, and finds them settled.
    let ratings = feedback::of_runs(tx, hops.iter().map(|hop| hop.run).collect()).await?;
    let mut sums: BTreeMap<PatternKey, Count> = BTreeMap::new();
    for Unsettled { key, run, mut count } in hops {
        if let Some(ratings) = ratings.get(&run)
            && rated.insert((run, key.clone()))
        {
            count.ratings = *ratings;
        }
        *sums.entry(key).or_default() += count;
    }
    Ok(sums)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::history::tests::plan;

    #[test]
    fn unsettled_hops_are_found_by_their_index() {
        for sql in [UNSETTLED, UNTIL, SETTLE, RATED] {
            let plan = plan(sql);
            assert!(plan.iter().any(|line| line.contains("hops_unsettled (tenant=?")), "{sql}: {plan:?}");
            let is_scan = |line: &&String| line.starts_with("SCAN ") && !line.contains("oldest");
            assert!(!plan.iter().any(|line| is_scan(&line)), "{sql}: {plan:?}");
        }
        for sql in [SETTLE_THREAD, RATED_OF_THREAD] {
            let plan = plan(sql);
            assert!(plan[0].contains("PRIMARY KEY (thread_number=? AND tenant=?"), "{sql}: {plan:?}");
        }
    }
}
