//! How many runs of a tenant may be open at once: queued, running or waiting.
//!
//! The tenant's row counts them. It is changed when a transaction ends ([`closing`](crate::closing)), so what counts for a job is
//! that number and what the jobs of its own transaction have opened and ended so far.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use baton_core::StoreError;

use crate::tx::Tx;

/// What a look at the open runs has found.
pub(super) struct Room {
    most: Option<u32>,
    /// So many were open before this transaction. Nobody has counted where there is no limit.
    open: i64,
}

impl Room {
    /// Refuses if there is none, without having written anything.
    pub(super) async fn look(tx: &Tx<'_>, most: Option<u32>) -> Result<Self, StoreError> {
        if most.is_none() {
            return Ok(Self { most, open: 0 });
        }
        let row = tx.first("SELECT open_runs FROM tenants WHERE tenant = $1", &[]).await?;
        let room = Self { most, open: row.map_or(Ok(0), |row| row.int(0))? };
        let closing = tx.closing.lock().unwrap_or_else(PoisonError::into_inner);
        closing.check_room(room.open, most).map(|()| room)
    }

    /// Opens a run, unless another job of the same transaction has taken the last place since.
    pub(super) fn take(self, tx: &Tx<'_>) -> Result<(), StoreError> {
        let mut closing = tx.closing.lock().unwrap_or_else(PoisonError::into_inner);
        closing.check_room(self.open, self.most)?;
        closing.open_run(self.most);
        tx.has_written.store(true, Ordering::Relaxed);
        Ok(())
    }
}
