//! A process takes the next run of a thread.

use std::time::Duration;

use baton_core::store::{Claim, Claimed, Owner};
use baton_core::{RunId, StoreError, ThreadId};

use super::until;
use crate::handoffs;
use crate::runs::{ledger, record, steps};
use crate::tx::Tx;
use crate::value::{Row, params};

/// Of all that want the thread at the same time this lets one through. What was appended under the claim before counts no
/// more.
const TAKE: &str = "
    UPDATE threads
    SET epoch = epoch + 1, owner = $3, lease_until = $4, appended = 0, appended_run = NULL, appended_seq = 0
    WHERE tenant = $1 AND thread_id = $2
        AND CASE WHEN active_run IS NULL THEN queued > 0 ELSE lease_until IS NULL OR lease_until < $5 END
    RETURNING epoch, active_run, last_handoff";

pub(super) async fn claim(
    tx: &Tx<'_>,
    thread: ThreadId,
    owner: &Owner,
    lease: Duration,
) -> Result<Option<Claimed>, StoreError> {
    let params = params![thread, &*owner.0, until(tx, lease), tx.now()];
    let Some(taken) = tx.first(TAKE, params).await? else { return Ok(None) };
    let run_id = match taken.optional(1, Row::parse)? {
        Some(orphan) => take_over(tx, orphan).await?,
        None => begin(tx, thread).await?,
    };
    let claim = Claim { thread_id: thread, run_id, owner: owner.clone(), epoch: taken.count(0)? };
    let run = record::one(tx, run_id).await?;
    let handoff = match taken.optional(2, Row::text)? {
        Some(_) => handoffs::last_of(tx, thread).await?,
        None => None,
    };
    if run.attempts <= 1 {
        return Ok(Some(Claimed { claim, run, steps: Vec::new(), rows: Vec::new(), handoff }));
    }
    let (steps, rows) = futures_util::try_join!(steps::of_run(tx, run_id), ledger::of_run(tx, run_id))?;
    Ok(Some(Claimed { claim, run, steps, rows, handoff }))
}

/// The run of a process that is gone.
async fn take_over(tx: &Tx<'_>, run: RunId) -> Result<RunId, StoreError> {
    let sql = "UPDATE runs SET attempts = attempts + 1 WHERE tenant = $1 AND run_id = $2";
    tx.execute(sql, params![run]).await?;
    Ok(run)
}

const BEGIN: &str = "
    UPDATE runs
    SET status = 'running', started_at = coalesce(started_at, $3), attempts = attempts + 1
    WHERE tenant = $1 AND run_id = (
        SELECT run_id FROM runs
        WHERE tenant = $1 AND thread_id = $2 AND status = 'queued'
        ORDER BY ordinal
        LIMIT 1
    )
    RETURNING run_id";

/// The first run that is queued. It is looked for once the thread is ours: nobody else can have begun it since.
async fn begin(tx: &Tx<'_>, thread: ThreadId) -> Result<RunId, StoreError> {
    let begun = tx.first(BEGIN, params![thread, tx.now()]).await?;
    let Some(begun) = begun else {
        return Err(StoreError::Corrupt(format!("thread {thread} counts a queued run that is not there")));
    };
    let run = begun.parse(0)?;
    let sql = "UPDATE threads SET active_run = $3, queued = queued - 1 WHERE tenant = $1 AND thread_id = $2";
    tx.execute(sql, params![thread, run]).await?;
    Ok(run)
}
