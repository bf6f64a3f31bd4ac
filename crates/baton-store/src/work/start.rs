//! Accepts a message and starts its run, in one write.

use baton_core::store::{
    AcceptedRun, Append, Appended, Claim, Claimed, MessageQuery, NewRun, RunRecord, RunStart, StartedRun,
    ThreadMessage,
};
use baton_core::{Role, StoreError, Visibility};

use super::append::{self, Numbers};
use super::claim;
use crate::runs::accept::{self, Arrived, ClaimStart, KNOWN, RunPosition};
use crate::threads::history;
use crate::tx::Tx;
use crate::value::{Row, params};

pub(super) async fn start(
    tx: &Tx<'_>,
    run: &NewRun,
    start: &RunStart,
) -> Result<(AcceptedRun, Option<StartedRun>), StoreError> {
    let first = Some(&*start.append).filter(|append| is_counted(append));
    let arrived = accept::arrive(tx, run, Some(ClaimStart { owner: &start.owner, append: first })).await;
    let (place, mut changes) = match arrived {
        // An earlier attempt of this start, found by its idempotency key.
        Ok(Arrived::Before(first)) if first.run_id == run.run_id => return again(tx, run, start).await,
        Ok(Arrived::Before(first)) => return Ok((first, None)),
        Ok(Arrived::Now(place, changes)) => (place, changes),
        Err(KNOWN) => return again(tx, run, start).await,
        Err(error) => return Err(error),
    };
    if !place.begins(run) {
        let behind = place.behind(tx).await?;
        tx.write(changes).await?;
        return Ok((accept::accepted(run, behind), None));
    }
    let claim = Claim {
        thread_id: run.thread_id,
        run_id: run.run_id,
        owner: start.owner.clone(),
        epoch: place.epoch,
    };
    let mut appended = None;
    if let Some(append) = first.filter(|_| place.last_handoff.is_none()) {
        let numbers = numbers(&place, append);
        append::rows(&mut changes, &claim, append, &numbers)?;
        tx.audit_run(run.thread_id, place.thread, &append.audit)?;
        appended = Some(Appended { first_seq: numbers.event, queued: 0, next: None });
    }
    // Reads the history before the message is inserted; the message itself is appended from memory.
    let (recent, handoff) = futures_util::try_join!(
        recent(tx, run, &place),
        claim::last_handoff(tx, run.thread_id, place.last_handoff)
    )?;
    tx.write(changes).await?;
    if first.is_none() && handoff.is_none() {
        appended = Some(append::append(tx, &claim, &start.append).await?);
    }
    let agent = appended.as_ref().and(start.append.agent.as_ref()).unwrap_or(&run.agent).clone();
    let (started_at, message_number) = (Some(tx.now()), place.message_number);
    let record = RunRecord { agent, started_at, message_number, ..run.claimed(tx.now()) };
    let claimed = Claimed { claim, run: record, steps: Vec::new(), rows: Vec::new(), handoff };
    Ok((accept::accepted(run, None), Some(StartedRun { claimed, recent, appended })))
}

/// Whether an append only inserts rows, so that the statement that starts the run can count it.
fn is_counted(append: &Append) -> bool {
    append.end.is_none()
        && append.holder.is_none()
        && append.handoffs.is_empty()
        && append.hops.is_empty()
        && append.messages.is_empty()
}

fn numbers(place: &RunPosition, append: &Append) -> Numbers {
    Numbers {
        thread: place.thread,
        event: place.last_seq + 1 - append.events.len() as u64,
        message: place.message_number + 1,
        record: place.last_record + 1 - append::records(append),
        queued: 0,
        last_handoff: None,
    }
}

/// The last user-visible messages, including the new one. Skips the query for the first message of a thread.
async fn recent(tx: &Tx<'_>, run: &NewRun, place: &RunPosition) -> Result<Vec<ThreadMessage>, StoreError> {
    let is_seen = run.message.visibility == Visibility::User && run.message.role != Role::System;
    let mut recent = Vec::new();
    if place.message_number > 1 {
        let limit = StartedRun::RECENT - u32::from(is_seen);
        recent = history::last(tx, run.thread_id, place.thread, MessageQuery::last(limit)).await?;
    }
    if is_seen {
        recent.push(ThreadMessage { number: place.message_number, message: history::stored(&run.message) });
    }
    Ok(recent)
}

const BEGUN: &str =
    "SELECT w.epoch, w.appended, w.appended_seq, w.queued, w.last_handoff, w.thread_number FROM thread_work AS w
    WHERE w.tenant = $1 AND w.thread_id = $2 AND w.active_run = $3 AND w.owner = $4 AND w.appended <= $5";

/// Repeats a start whose outcome was unknown to the caller.
async fn again(
    tx: &Tx<'_>,
    run: &NewRun,
    start: &RunStart,
) -> Result<(AcceptedRun, Option<StartedRun>), StoreError> {
    let RunStart { owner, append } = start;
    let accepted = accept::accepted(run, None);
    let params = params![run.thread_id, run.run_id, &*owner.0, append.number];
    let Some(begun) = tx.first(BEGUN, params).await? else { return Ok((accepted, None)) };
    let claim =
        Claim { thread_id: run.thread_id, run_id: run.run_id, owner: owner.clone(), epoch: begun.count(0)? };
    let claimed = claim::claimed(tx, claim, begun.optional(4, Row::parse)?).await?;
    let before = Some(claimed.run.message_number + 1);
    let query = MessageQuery { before, ..MessageQuery::last(StartedRun::RECENT) };
    let recent = history::last(tx, run.thread_id, begun.count(5)?, query).await?;
    let appended = match begun.count(1)? {
        0 => None,
        _ => Some(Appended { first_seq: begun.count(2)?, queued: begun.count(3)?, next: None }),
    };
    Ok((accepted, Some(StartedRun { claimed, recent, appended })))
}
