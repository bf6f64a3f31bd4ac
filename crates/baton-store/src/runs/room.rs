//! The limit of open runs per tenant: queued or running. A run that waits for a person does not count.
//!
//! Runs are counted in their index, never beyond the limit. A process that finds free capacity opens a sixteenth of it without
//! counting again; close to the limit every run is counted. SQLite has a single writer, so that count is exact. On PostgreSQL
//! an advisory lock of the tenant, held until the commit, serializes transactions close to the limit.
//!
//! The limit per user is checked only while the tenant has as many open runs as one user may have, so that it costs nothing
//! otherwise. It is not exact: runs that are accepted at the same moment do not see each other.

use std::sync::{Arc, PoisonError};

use baton_core::store::NewRun;
use baton_core::{RunId, StoreError};
use uuid::Uuid;

use crate::tx::Tx;
use crate::value::{SqlValue, params};

/// In index order, so that SQLite uses the index.
const COUNT: &str = "SELECT count(*) FROM (
        SELECT 1 FROM runs WHERE tenant = $1 AND finished_at IS NULL AND status <> 'waiting'
        ORDER BY thread_number, ordinal
        LIMIT $2
    ) AS open";

/// PostgreSQL only. Waits for the transaction holding the lock; the next statement sees its writes.
const LOCK: &str = "SELECT 1 FROM pg_advisory_xact_lock(hashtextextended('baton runs of ' || $1, 0))";

const COUNT_OTHERS: &str = "SELECT count(*) FROM (
        SELECT 1 FROM runs
        WHERE tenant = $1 AND finished_at IS NULL AND status <> 'waiting' AND run_id <> ALL ($3)
        LIMIT $2
    ) AS open";

const COUNT_OF_USER: &str = "SELECT count(*) FROM (
        SELECT 1 FROM runs
        WHERE tenant = $1 AND finished_at IS NULL AND status <> 'waiting' AND user_id = $3
        ORDER BY thread_number, ordinal
        LIMIT $2
    ) AS open";

/// The divisor of the free capacity that is used without counting again.
const SHARE: u64 = 16;

/// A transaction's knowledge of its tenant's open runs.
#[derive(Debug, Default)]
pub(crate) struct OpenRuns {
    /// Number of runs counted.
    counted: u64,
    /// Runs opened by this transaction that the count excludes.
    own: Vec<Uuid>,
    is_locked: bool,
    /// Serializes counting between jobs.
    turn: Arc<futures_util::lock::Mutex<()>>,
}

impl OpenRuns {
    fn left(&self, most: u32) -> u64 {
        u64::from(most).saturating_sub(self.counted + self.own.len() as u64)
    }
}

/// Refuses if a limit is reached, without writing.
pub(super) async fn look(tx: &Tx<'_>, run: &NewRun) -> Result<(), StoreError> {
    look_at_tenant(tx, run.max_active).await?;
    look_at_user(tx, run).await
}

async fn look_at_user(tx: &Tx<'_>, run: &NewRun) -> Result<(), StoreError> {
    let Some(most) = run.max_active_of_user else { return Ok(()) };
    let of_tenant = run.max_active.and_then(|all| tx.shared.open_at_most(tx.tenant, all));
    if of_tenant.is_some_and(|open| open < u64::from(most)) {
        return Ok(());
    }
    let open = count(tx, COUNT_OF_USER, params![most, &run.user_id]).await?;
    if open < u64::from(most) { Ok(()) } else { Err(StoreError::TooManyRunsOfUser(most)) }
}

async fn look_at_tenant(tx: &Tx<'_>, most: Option<u32>) -> Result<(), StoreError> {
    let Some(most) = most.filter(|most| !tx.shared.has_room(tx.tenant, *most)) else { return Ok(()) };
    let turn = known(tx, |room| Arc::clone(&room.turn));
    let _turn = turn.lock().await;
    check(tx, most).await
}

/// Opens a run, unless other runs have reached the limit since [`look`].
pub(super) async fn take(tx: &Tx<'_>, run: RunId, most: Option<u32>) -> Result<(), StoreError> {
    if let Some(most) = most.filter(|most| !tx.shared.take_room(tx.tenant, *most)) {
        let turn = known(tx, |room| Arc::clone(&room.turn));
        let _turn = turn.lock().await;
        check(tx, most).await?;
        tx.shared.take_room(tx.tenant, most);
    }
    if tx.is_postgres() {
        known(tx, |room| room.own.push(run.as_uuid()));
    }
    Ok(())
}

/// Counts the open runs, and records how many may be opened without counting again.
async fn check(tx: &Tx<'_>, most: u32) -> Result<(), StoreError> {
    if !tx.is_postgres() {
        let counted = count(tx, COUNT, params![most]).await?;
        known(tx, |room| room.counted = counted);
    } else if known(tx, |room| room.is_locked) {
        count_others(tx, most).await?;
    } else {
        count_others(tx, most).await?;
        if known(tx, |room| room.left(most)) < SHARE {
            lock(tx).await?;
            count_others(tx, most).await?;
        }
    }
    let left = known(tx, |room| room.left(most));
    tx.shared.set_short(tx.tenant, left < SHARE);
    tx.shared.set_room(tx.tenant, most, left / SHARE, u64::from(most) - left);
    if left == 0 { Err(StoreError::TooManyRuns(most)) } else { Ok(()) }
}

/// PostgreSQL only: serializes the transactions of the tenant. A transaction with several jobs calls this before any of them
/// locks a row, so that all transactions lock in the same order.
pub(crate) async fn lock(tx: &Tx<'_>) -> Result<(), StoreError> {
    tx.first(LOCK, &[]).await?;
    known(tx, |room| room.is_locked = true);
    Ok(())
}

async fn count_others(tx: &Tx<'_>, most: u32) -> Result<(), StoreError> {
    let own = known(tx, |room| room.own.clone());
    let counted = count(tx, COUNT_OTHERS, &[SqlValue::from(most), SqlValue::Ids(own)]).await?;
    known(tx, |room| room.counted = counted);
    Ok(())
}

async fn count(tx: &Tx<'_>, sql: &'static str, params: &[SqlValue]) -> Result<u64, StoreError> {
    tx.first(sql, params).await?.map_or(Ok(0), |row| row.count(0))
}

fn known<T>(tx: &Tx<'_>, look: impl FnOnce(&mut OpenRuns) -> T) -> T {
    look(&mut tx.closing.lock().unwrap_or_else(PoisonError::into_inner).room)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::history::tests::plan;

    #[test]
    fn open_runs_are_counted_in_their_index() {
        for sql in [COUNT, COUNT_OF_USER] {
            let plan = plan(sql);
            assert!(
                plan.iter().any(|line| line == "SEARCH runs USING INDEX runs_open (tenant=?)"),
                "{plan:?}"
            );
        }
    }
}
