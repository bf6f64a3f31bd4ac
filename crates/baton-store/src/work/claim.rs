//! Claims the next run of a thread.

use baton_core::store::{Claim, Claimed, HandoffSession, Owner};
use baton_core::{HandoffId, RunId, StoreError, ThreadId};

use crate::handoffs;
use crate::runs::{cancel, ledger, record, steps};
use crate::tx::Tx;
use crate::value::{Row, params};

/// Atomic: one of several concurrent claimants succeeds. Resets the append counters of the previous claim.
const TAKE: &str = "
    UPDATE thread_work
    SET epoch = epoch + 1, owner = $3, appended = 0, appended_run = NULL, appended_seq = 0
    WHERE tenant = $1 AND thread_id = $2
        AND CASE
            WHEN active_run IS NULL THEN queued > 0
            ELSE NOT EXISTS (
                SELECT 1 FROM servers AS s WHERE s.owner = thread_work.owner AND s.lease_until >= $4
            ) OR (CAST($5 AS BIGINT) = 1 AND owner = $3 AND appended = 0)
        END
    RETURNING epoch, active_run, last_handoff, last_seq, thread_number";

pub(super) async fn claim(
    tx: &Tx<'_>,
    thread: ThreadId,
    owner: &Owner,
    is_repeated: bool,
) -> Result<Option<Claimed>, StoreError> {
    for _ in 0..MOST_UNREADABLE {
        let taken = tx.first(TAKE, params![thread, &*owner.0, tx.now(), is_repeated]).await?;
        let Some(taken) = taken else { return Ok(None) };
        let run_id = match taken.optional(1, Row::parse)? {
            Some(orphan) => take_over(tx, orphan).await?,
            None => begin(tx, thread, taken.count(4)?, taken.count(3)?).await?,
        };
        let claim = Claim { thread_id: thread, run_id, owner: owner.clone(), epoch: taken.count(0)? };
        if let Some(claimed) = claimed_or_interrupted(tx, claim, taken.optional(2, Row::parse)?).await? {
            return Ok(Some(claimed));
        }
    }
    Ok(None)
}

/// Maximum number of unreadable runs that one claim ends; the next claim continues.
const MOST_UNREADABLE: usize = 16;

/// Like [`claimed`], but ends a run that cannot be read, for example because a newer version wrote it, and returns `None`.
pub(super) async fn claimed_or_interrupted(
    tx: &Tx<'_>,
    claim: Claim,
    handoff: Option<HandoffId>,
) -> Result<Option<Claimed>, StoreError> {
    match claimed(tx, claim.clone(), handoff).await {
        Err(StoreError::Unreadable(reason)) => {
            tracing::error!(run = %claim.run_id, reason, "a run cannot be read, and is ended");
            let reason = format!("what is stored of it cannot be read: {reason}");
            cancel::interrupt(tx, &claim, &reason).await.map(|()| None)
        }
        claimed => claimed.map(Some),
    }
}

/// Loads a claimed run. Steps and ledger rows are read from its second attempt on.
pub(super) async fn claimed(
    tx: &Tx<'_>,
    claim: Claim,
    handoff: Option<HandoffId>,
) -> Result<Claimed, StoreError> {
    let run_id = claim.run_id;
    let (run, handoff) =
        futures_util::try_join!(record::one(tx, run_id), last_handoff(tx, claim.thread_id, handoff))?;
    if run.attempts <= 1 {
        return Ok(Claimed { claim, run, steps: Vec::new(), rows: Vec::new(), handoff });
    }
    let (steps, rows) = futures_util::try_join!(steps::of_run(tx, run_id), ledger::of_run(tx, run_id))?;
    Ok(Claimed { claim, run, steps, rows, handoff })
}

/// Queries only if the thread has ever had a handoff.
pub(super) async fn last_handoff(
    tx: &Tx<'_>,
    thread: ThreadId,
    last: Option<HandoffId>,
) -> Result<Option<HandoffSession>, StoreError> {
    match last {
        Some(_) => handoffs::last_of(tx, thread).await,
        None => Ok(None),
    }
}

/// Counts another attempt of a run whose worker is gone.
async fn take_over(tx: &Tx<'_>, run: RunId) -> Result<RunId, StoreError> {
    let sql = "UPDATE runs SET attempts = attempts + 1 WHERE tenant = $1 AND run_id = $2";
    tx.execute(sql, params![run]).await?;
    Ok(run)
}

const BEGIN: &str = "
    UPDATE runs
    SET status = 'running', started_at = coalesce(started_at, $3), attempts = attempts + 1,
        first_seq = coalesce(first_seq, $4)
    WHERE tenant = $1 AND run_id = (
        SELECT run_id FROM runs
        WHERE tenant = $1 AND thread_number = $2 AND finished_at IS NULL AND status <> 'waiting'
        ORDER BY ordinal
        LIMIT 1
    )
    RETURNING run_id";

/// Starts the first queued run of a thread, given by id and number, whatever a newer version calls that status. The thread must
/// already be claimed, so that no other process starts it.
pub(super) async fn begin(
    tx: &Tx<'_>,
    thread: ThreadId,
    number: u64,
    last_seq: u64,
) -> Result<RunId, StoreError> {
    let begun = tx.first(BEGIN, params![number, tx.now(), last_seq + 1]).await?;
    let Some(begun) = begun else {
        return Err(StoreError::Corrupt(format!("thread {thread} counts a queued run that is not there")));
    };
    let run = begun.parse(0)?;
    let sql =
        "UPDATE thread_work SET active_run = $3, queued = queued - 1 WHERE tenant = $1 AND thread_id = $2";
    tx.execute(sql, params![thread, run]).await?;
    Ok(run)
}

/// Matches this claim, or the claim of the next run if this run's end acquired it and the reply was lost.
const ABANDON: &str = "
    UPDATE thread_work SET owner = NULL
    WHERE tenant = $1 AND thread_id = $2 AND owner = $4
        AND ((active_run = $3 AND epoch = $5) OR (epoch = $5 + 1 AND appended = 0 AND appended_run = $3))";

/// Clears the owner, so that any process can claim the run.
pub(super) async fn abandon(tx: &Tx<'_>, claim: &Claim) -> Result<(), StoreError> {
    let Claim { thread_id, run_id, owner, epoch } = claim;
    tx.execute(ABANDON, params![*thread_id, *run_id, &*owner.0, *epoch]).await.map(drop)
}
