//! Runs that wait for a decision: no process has them, and the thread's other runs go on.

use baton_core::store::{Append, Claim, RunStatus};
use baton_core::{RunId, StoreError, ThreadId};

use crate::approvals;
use crate::threads;
use crate::tx::Tx;
use crate::value::params;

/// The attempts count crashes, so they begin again with a run that has come this far.
const PARK: &str = "
    UPDATE runs
    SET status = CASE WHEN CAST($3 AS BIGINT) = 1 AND cancel IS NULL THEN 'waiting' ELSE 'queued' END, attempts = 1
    WHERE tenant = $1 AND run_id = $2
    RETURNING status";

/// Parks the run of an append that has released its claim. A decision that came earlier, or a request to stop, queues the run
/// instead. Returns whether it is queued.
///
/// The transaction holds the lock of the thread's row, as do [`resume`] and a cancellation, so no decision is lost between the
/// two.
pub(super) async fn park(
    tx: &Tx<'_>,
    claim: &Claim,
    number: u64,
    append: &Append,
) -> Result<bool, StoreError> {
    let is_pending = approvals::are_pending(tx, claim.run_id, &append.waits_for).await?;
    let parked = tx.first(PARK, params![claim.run_id, is_pending]).await?;
    let status: RunStatus = parked.ok_or(StoreError::NotFound("run"))?.choice(0)?;
    tx.execute(threads::USED, params![number, tx.now()]).await?;
    let is_queued = status == RunStatus::Queued;
    if is_queued {
        tx.execute(QUEUE, params![claim.thread_id]).await?;
    }
    Ok(is_queued)
}

const LOCK: &str = "UPDATE thread_work SET records = records WHERE tenant = $1 AND thread_id = $2";

/// Locks the thread, which every change of a waiting run needs.
pub(crate) async fn lock(tx: &Tx<'_>, thread: ThreadId) -> Result<(), StoreError> {
    match tx.execute(LOCK, params![thread]).await? {
        0 => Err(StoreError::ThreadNotFound),
        _ => Ok(()),
    }
}

const RESUME: &str =
    "UPDATE runs SET status = 'queued' WHERE tenant = $1 AND run_id = $2 AND status = 'waiting'";

const QUEUE: &str = "UPDATE thread_work SET queued = queued + 1 WHERE tenant = $1 AND thread_id = $2";

/// Queues a waiting run at its place in the thread. The thread must be locked. Returns `false` if the run does not wait.
pub(crate) async fn resume(tx: &Tx<'_>, thread: ThreadId, run: RunId) -> Result<bool, StoreError> {
    let is_queued = tx.execute(RESUME, params![run]).await? > 0;
    if is_queued {
        tx.execute(QUEUE, params![thread]).await?;
    }
    Ok(is_queued)
}
