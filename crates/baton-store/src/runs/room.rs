//! How many runs of a tenant may be open at once: queued, running or waiting.
//!
//! They are counted in their index, never further than the limit, and not for every run: a process that has found much room opens a
//! sixteenth of it without counting again. Near the limit every run is counted. On SQLite nothing else is written meanwhile, so that
//! is exact; on PostgreSQL transactions come one after the other then, by a lock of the tenant that lasts until they commit.

use std::sync::{Arc, PoisonError};

use baton_core::{RunId, StoreError};
use uuid::Uuid;

use crate::tx::Tx;
use crate::value::{Value, params};

/// The order is that of their index, so that SQLite takes it.
const COUNT: &str = "SELECT count(*) FROM (
        SELECT 1 FROM runs WHERE tenant = $1 AND status IN ('queued', 'running', 'waiting')
        ORDER BY thread_id, ordinal
        LIMIT $2
    ) AS open";

/// PostgreSQL only. Waits for the transaction that has the lock; what that has written is seen by the next statement.
const LOCK: &str = "SELECT 1 FROM pg_advisory_xact_lock(hashtextextended('baton runs of ' || $1, 0))";

const COUNT_OTHERS: &str = "SELECT count(*) FROM (
        SELECT 1 FROM runs WHERE tenant = $1 AND status IN ('queued', 'running', 'waiting') AND run_id <> ALL ($3) LIMIT $2
    ) AS open";

/// The part of the room that is used without counting again.
const SHARE: u64 = 16;

/// What a transaction knows of the open runs of its tenant.
#[derive(Debug, Default)]
pub(crate) struct Room {
    /// Those that were counted.
    counted: u64,
    /// Opened by this transaction, where they are not among those.
    own: Vec<Uuid>,
    is_locked: bool,
    /// Held by the job that counts.
    turn: Arc<futures_util::lock::Mutex<()>>,
}

impl Room {
    fn left(&self, most: u32) -> u64 {
        u64::from(most).saturating_sub(self.counted + self.own.len() as u64)
    }
}

/// Refuses if there is no room, without having written anything.
pub(super) async fn look(tx: &Tx<'_>, most: Option<u32>) -> Result<(), StoreError> {
    let Some(most) = most.filter(|most| !tx.shared.has_room(tx.tenant, *most)) else { return Ok(()) };
    let turn = known(tx, |room| Arc::clone(&room.turn));
    let _turn = turn.lock().await;
    check(tx, most).await
}

/// Opens a run, unless others have taken the last places since the [`look`].
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

/// Counts. Where there is much room, the next ones need not.
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
    tx.shared.set_room(tx.tenant, most, left / SHARE);
    if left == 0 { Err(StoreError::TooManyRuns(most)) } else { Ok(()) }
}

/// PostgreSQL only: makes transactions of the tenant come one after the other. A transaction with several jobs has to do this before
/// any of them locks a row, so that all transactions lock in the same order.
pub(crate) async fn lock(tx: &Tx<'_>) -> Result<(), StoreError> {
    tx.first(LOCK, &[]).await?;
    known(tx, |room| room.is_locked = true);
    Ok(())
}

async fn count_others(tx: &Tx<'_>, most: u32) -> Result<(), StoreError> {
    let own = known(tx, |room| room.own.clone());
    let counted = count(tx, COUNT_OTHERS, &[Value::from(most), Value::Ids(own)]).await?;
    known(tx, |room| room.counted = counted);
    Ok(())
}

async fn count(tx: &Tx<'_>, sql: &'static str, params: &[Value]) -> Result<u64, StoreError> {
    tx.first(sql, params).await?.map_or(Ok(0), |row| row.count(0))
}

fn known<T>(tx: &Tx<'_>, look: impl FnOnce(&mut Room) -> T) -> T {
    look(&mut tx.closing.lock().unwrap_or_else(PoisonError::into_inner).room)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::history::tests::plan;

    #[test]
    fn open_runs_are_counted_in_their_index() {
        let plan = plan(COUNT);
        assert!(plan.iter().any(|line| line == "SEARCH runs USING INDEX runs_open (tenant=?)"), "{plan:?}");
    }
}
