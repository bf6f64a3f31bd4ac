//! A process takes the next run of a thread.

use baton_core::store::{Claim, Claimed, HandoffSession, Owner};
use baton_core::{HandoffId, RunId, StoreError, ThreadId};

use crate::handoffs;
use crate::runs::{ledger, record, steps};
use crate::tx::Tx;
use crate::value::{Row, params};

/// Of all that want the thread at the same time this lets one through. What was appended under the claim before counts no
/// more.
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
    RETURNING epoch, active_run, last_handoff, last_seq";

pub(super) async fn claim(
    tx: &Tx<'_>,
    thread: ThreadId,
    owner: &Owner,
    is_repeated: bool,
) -> Result<Option<Claimed>, StoreError> {
    let taken = tx.first(TAKE, params![thread, &*owner.0, tx.now(), is_repeated]).await?;
    let Some(taken) = taken else { return Ok(None) };
    let run_id = match taken.optional(1, Row::parse)? {
        Some(orphan) => take_over(tx, orphan).await?,
        None => begin(tx, thread, taken.count(3)?).await?,
    };
    let claim = Claim { thread_id: thread, run_id, owner: owner.clone(), epoch: taken.count(0)? };
    claimed(tx, claim, taken.optional(2, Row::parse)?).await.map(Some)
}

/// All that is known of a run that was just claimed.
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

/// Nothing is read where there was none.
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

/// The run of a process that is gone.
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
        WHERE tenant = $1 AND thread_id = $2 AND status IN ('queued', 'running', 'waiting') AND status = 'queued'
        ORDER BY ordinal
        LIMIT 1
    )
    RETURNING run_id";

/// The first run that is queued. It is looked for once the thread is ours: nobody else can have begun it since.
pub(super) async fn begin(tx: &Tx<'_>, thread: ThreadId, last_seq: u64) -> Result<RunId, StoreError> {
    let begun = tx.first(BEGIN, params![thread, tx.now(), last_seq + 1]).await?;
    let Some(begun) = begun else {
        return Err(StoreError::Corrupt(format!("thread {thread} counts a queued run that is not there")));
    };
    let run = begun.parse(0)?;
    let sql =
        "UPDATE thread_work SET active_run = $3, queued = queued - 1 WHERE tenant = $1 AND thread_id = $2";
    tx.execute(sql, params![thread, run]).await?;
    Ok(run)
}

/// The claim, or that of the next run if the end of this one has claimed it and its answer was lost.
const ABANDON: &str = "
    UPDATE thread_work SET owner = NULL
    WHERE tenant = $1 AND thread_id = $2 AND owner = $4
        AND ((active_run = $3 AND epoch = $5) OR (epoch = $5 + 1 AND appended = 0 AND appended_run = $3))";

/// A run without an owner is anybody's.
pub(super) async fn abandon(tx: &Tx<'_>, claim: &Claim) -> Result<(), StoreError> {
    let Claim { thread_id, run_id, owner, epoch } = claim;
    tx.execute(ABANDON, params![*thread_id, *run_id, &*owner.0, *epoch]).await.map(drop)
}
