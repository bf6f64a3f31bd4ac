//! How much the evidence of a run counts: less with every run of the same user on the same day.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use baton_core::StoreError;
use baton_core::learning::{MAX_RUNS_PER_DAY, run_weight};
use uuid::Uuid;

use crate::tx::Tx;
use crate::value::{SqlValue, params};

const DAY_MILLIS: u64 = 24 * 60 * 60 * 1000;
/// Runs whose weight is read with one statement.
const MOST_RUNS: usize = 500;

/// Numbers of runs among those of their user on one day, which begins with the run id `$3` and at `$4` and ends at `$5`. Calls of
/// deleted threads count as runs: deleting a thread does not give more weight to the runs that follow.
macro_rules! nth_of_day {
    ($in_runs:literal) => {
        concat!(
            "SELECT r.run_id,
                (SELECT count(*) FROM (
                    SELECT 1 FROM runs AS e
                    WHERE e.tenant = $1 AND e.user_id = r.user_id AND e.run_id >= $3 AND e.run_id <= r.run_id
                    LIMIT $6
                ) AS earlier)
                + (SELECT count(*) FROM (
                    SELECT 1 FROM past_calls AS p
                    WHERE p.tenant = $1 AND p.user_id = r.user_id AND p.started_at >= $4 AND p.started_at < $5
                    LIMIT $6
                ) AS deleted)
            FROM runs AS r
            WHERE r.tenant = $1 AND r.run_id ",
            $in_runs
        )
    };
}

/// SQLite has no arrays: `$2` is the concatenation of the ids, 16 bytes each.
const NTH_OF_DAY: &str = nth_of_day!(
    "IN (
        WITH RECURSIVE listed (id, rest) AS (
            SELECT substr($2, 1, 16), substr($2, 17)
            UNION ALL
            SELECT substr(rest, 1, 16), substr(rest, 17) FROM listed WHERE length(rest) > 0
        )
        SELECT id FROM listed
    )"
);

const NTH_OF_DAY_ARRAY: &str = nth_of_day!("= ANY ($2)");

/// The weights of these runs. Runs that are deleted are omitted.
pub(super) async fn of_runs(tx: &Tx<'_>, runs: &BTreeSet<Uuid>) -> Result<HashMap<Uuid, f64>, StoreError> {
    let mut weights = HashMap::new();
    for (day, runs) in by_day(runs) {
        let start = i64::try_from(day * DAY_MILLIS * 1000).unwrap_or(i64::MAX);
        let end = i64::try_from((day + 1) * DAY_MILLIS * 1000).unwrap_or(i64::MAX);
        let first = Uuid::from_u128(u128::from(day * DAY_MILLIS) << 80);
        for some in runs.chunks(MOST_RUNS) {
            let sql = if tx.is_postgres() { NTH_OF_DAY_ARRAY } else { NTH_OF_DAY };
            let ids = [SqlValue::Ids(some.to_vec())];
            let bounds = params![first, start, end, MAX_RUNS_PER_DAY];
            for row in tx.query(sql, &[ids.as_slice(), bounds].concat()).await? {
                let nth = u32::try_from(row.int(1)?).unwrap_or(u32::MAX);
                weights.insert(row.parse(0)?, run_weight(nth));
            }
        }
    }
    Ok(weights)
}

/// The runs by the day, in UTC, on which they were created: their ids begin with the time in milliseconds.
fn by_day(runs: &BTreeSet<Uuid>) -> BTreeMap<u64, Vec<Uuid>> {
    let mut days: BTreeMap<u64, Vec<Uuid>> = BTreeMap::new();
    for run in runs {
        let millis = u64::try_from(run.as_u128() >> 80).unwrap_or_default();
        days.entry(millis / DAY_MILLIS).or_default().push(*run);
    }
    days
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::history::tests::plan;

    #[test]
    fn runs_of_a_day_are_found_by_indexes() {
        let plan = plan(NTH_OF_DAY);
        assert_eq!(plan[0], "SEARCH r USING PRIMARY KEY (tenant=? AND run_id=?)", "{plan:?}");
        for index in [
            "runs_of_user (tenant=? AND user_id=? AND run_id>? AND run_id<?)",
            "past_calls_of_user (tenant=? AND user_id=? AND started_at>? AND started_at<?)",
        ] {
            assert!(plan.iter().any(|line| line.ends_with(index)), "{index}: {plan:?}");
        }
    }
}
