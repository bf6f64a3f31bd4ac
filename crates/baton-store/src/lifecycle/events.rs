//! Removal of the events, steps and sessions of runs that ended long ago.

use baton_core::{RunId, StoreError};
use jiff::Timestamp;
use uuid::Uuid;

use crate::tx::Tx;
use crate::value::{Row, params};

const POSITION: &str = "SELECT run_id FROM event_sweeps WHERE tenant = $1";

const MOVE: &str = "INSERT INTO event_sweeps (tenant, run_id) VALUES ($1, $2)
    ON CONFLICT (tenant) DO UPDATE SET run_id = excluded.run_id";

/// Ids of runs rise with time, so the runs that were created before a time are those with smaller ids.
const RUNS: &str = "SELECT run_id, finished_at, thread_number, first_seq, last_seq FROM runs
    WHERE tenant = $1 AND run_id > $2 AND run_id < $3
    ORDER BY run_id
    LIMIT $4";

const DELETE: &str = "DELETE FROM journal
    WHERE tenant = $1 AND thread_number = $2 AND last_seq >= $3 AND last_seq <= $4 AND run_id = $5";

/// Continues after the run `after`, or where the last sweep ended. Returns the last run that was examined, or `None` at the end.
///
/// The position that is stored never passes a run that has not ended: the next sweep examines it again.
pub(super) async fn delete(
    tx: &Tx<'_>,
    before: Timestamp,
    after: Option<RunId>,
    limit: u32,
) -> Result<Option<RunId>, StoreError> {
    let stored = tx.first(POSITION, &[]).await?.map(|row| row.parse::<RunId>(0)).transpose()?;
    let start = after.or(stored).map_or(Uuid::nil(), RunId::as_uuid);
    let mut is_contiguous = after.is_none() || after == stored;
    let runs = tx.query(RUNS, params![start, first_id_at(before), limit]).await?;
    let (mut last, mut done) = (None, None);
    for run in &runs {
        let id: RunId = run.parse(0)?;
        if run.optional(1, Row::time)?.is_some_and(|at| at < before) {
            delete_of(tx, id, run).await?;
        } else {
            is_contiguous = false;
        }
        last = Some(id);
        done = if is_contiguous { last } else { done };
    }
    if let Some(done) = done {
        tx.execute(MOVE, params![done]).await?;
    }
    Ok(last.filter(|_| runs.len() == limit as usize))
}

async fn delete_of(tx: &Tx<'_>, id: RunId, run: &Row) -> Result<(), StoreError> {
    let (Some(first), Some(last)) = (run.optional(3, Row::int)?, run.optional(4, Row::int)?) else {
        return Ok(());
    };
    tx.execute(DELETE, params![run.int(2)?, first - 1, last, id]).await.map(drop)
}

/// The smallest id (UUID version 7) of this millisecond.
fn first_id_at(at: Timestamp) -> Uuid {
    let millis = u128::try_from(at.as_millisecond()).unwrap_or_default();
    Uuid::from_u128(millis << 80)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::history::tests::plan;

    #[test]
    fn ids_are_compared_by_their_time() {
        let now = Uuid::now_v7();
        let (secs, nanos) = now.get_timestamp().unwrap().to_unix();
        let at = Timestamp::new(secs.cast_signed(), nanos.cast_signed()).unwrap();
        assert!(first_id_at(at) < now && now < first_id_at(at + jiff::SignedDuration::from_millis(1)));
    }

    #[test]
    fn only_runs_after_the_position_and_their_rows_are_read() {
        assert_eq!(plan(RUNS), ["SEARCH runs USING PRIMARY KEY (tenant=? AND run_id>? AND run_id<?)"]);
        assert!(plan(DELETE)[0].contains("(thread_number=? AND tenant=? AND last_seq>? AND last_seq<?)"));
    }
}
