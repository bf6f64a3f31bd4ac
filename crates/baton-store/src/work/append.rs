//! What a run did is kept, as a whole or not at all.

use baton_core::store::work::RunEnd;
use baton_core::store::{Append, Claim, End, NewEvent, RunStatus};
use baton_core::{Event, StoreError};

use crate::runs::{ledger, sessions, steps};
use crate::threads::history;
use crate::tx::Tx;
use crate::value::{Value, params};
use crate::{handoffs, patterns};

pub(super) async fn append(tx: &Tx<'_>, claim: &Claim, append: &Append) -> Result<u64, StoreError> {
    if append.end.as_ref().is_some_and(|end| !end.status.is_final() && end.status != RunStatus::Waiting) {
        return Err(StoreError::Conflict("the status of a run that ends"));
    }
    let Some(numbers) = reserve(tx, claim, append).await? else {
        return repeated(tx, claim, append.number).await;
    };
    let (thread, run) = (claim.thread_id, claim.run_id);
    let after_steps = numbers.record + append.steps.len() as u64;
    // None of these needs another one, so on PostgreSQL they travel together.
    futures_util::try_join!(
        events(tx, claim, numbers.event, &append.events),
        history::write(tx, thread, numbers.message, &append.messages),
        steps::write(tx, run, numbers.record, &append.steps),
        ledger::write(tx, run, after_steps, &append.rows),
        sessions::write(tx, (thread, run), &append.sessions),
    )?;
    for change in &append.handoffs {
        handoffs::change(tx, change).await?;
    }
    for hop in &append.hops {
        patterns::record(tx, hop).await?;
    }
    if let Some(agent) = &append.agent {
        let sql = "UPDATE runs SET agent = $3 WHERE tenant = $1 AND run_id = $2";
        tx.execute(sql, params![run, agent]).await?;
    }
    if let Some(RunEnd { status, end }) = &append.end {
        finish(tx, claim, *status, end).await?;
    }
    for entry in &append.audit {
        tx.audit(entry.clone());
    }
    Ok(numbers.event)
}

/// The numbers of the first of each.
struct Numbers {
    event: u64,
    message: u64,
    record: u64,
}

/// One statement sees whether the claim still holds, whether this append is the next, gives it its numbers, and ends the
/// claim if the run ends.
const RESERVE: &str = "
    UPDATE threads
    SET last_seq = last_seq + $7, messages = messages + $8, records = records + $9,
        appended = $6, appended_run = $3, appended_seq = last_seq + 1, updated_at = $10, 
        holder = CASE WHEN handoff_id IS NULL THEN coalesce($11, holder) ELSE holder END,
        active_run = CASE WHEN CAST($12 AS BIGINT) = 1 THEN NULL ELSE active_run END,
        owner = CASE WHEN CAST($12 AS BIGINT) = 1 THEN NULL ELSE owner END,
        lease_until = CASE WHEN CAST($12 AS BIGINT) = 1 THEN NULL ELSE lease_until END
    WHERE tenant = $1 AND thread_id = $2 AND active_run = $3 AND owner = $4 AND epoch = $5
        AND appended + 1 = $6
    RETURNING last_seq, messages, records";

async fn reserve(tx: &Tx<'_>, claim: &Claim, append: &Append) -> Result<Option<Numbers>, StoreError> {
    let Claim { thread_id, run_id, owner, epoch } = claim;
    let events = append.events.len() as u64;
    let messages = append.messages.len() as u64;
    let records = (append.steps.len() + append.rows.len()) as u64;
    let (holder, ends) = (append.holder.as_ref(), append.end.is_some());
    let row = tx
        .first(
            RESERVE,
            params![
                *thread_id,
                *run_id,
                &*owner.0,
                *epoch,
                append.number,
                events,
                messages,
                records,
                tx.now(),
                holder,
                ends
            ],
        )
        .await?;
    row.map(|row| {
        Ok(Numbers {
            event: row.count(0)? + 1 - events,
            message: row.count(1)? + 1 - messages,
            record: row.count(2)? + 1 - records,
        })
    })
    .transpose()
}

/// The claim itself is gone if it ended with this very append.
const REPEATED: &str = "SELECT appended_seq FROM threads
    WHERE tenant = $1 AND thread_id = $2 AND epoch = $3 AND appended = $4 AND appended_run = $5";

/// The first event of an append that was written before; anything else comes from someone who lost the thread.
async fn repeated(tx: &Tx<'_>, claim: &Claim, number: u64) -> Result<u64, StoreError> {
    let row = tx.first(REPEATED, params![claim.thread_id, claim.epoch, number, claim.run_id]).await?;
    row.ok_or(StoreError::Fenced)?.count(0)
}

const EVENT: &str = "INSERT INTO events (tenant, thread_id, seq, run_id, body) VALUES ($1, $2, $3, $4, $5)";

async fn events(tx: &Tx<'_>, claim: &Claim, first: u64, events: &[NewEvent]) -> Result<(), StoreError> {
    let row = |(seq, new): (u64, &NewEvent)| {
        let event = Event {
            seq,
            thread_id: claim.thread_id,
            run_id: claim.run_id,
            at: new.at,
            agent: new.agent.clone(),
            path: new.path.clone(),
            visibility: new.visibility,
            kind: new.kind.clone(),
        };
        Ok(params![claim.thread_id, seq, claim.run_id, Value::json(&event)?].to_vec())
    };
    let rows = (first..).zip(events).map(row).collect::<Result<Vec<_>, StoreError>>()?;
    tx.execute_each(EVENT, rows).await
}

const FINISH: &str = "
    UPDATE runs SET status = $3, result = $4, finished_at = $5 WHERE tenant = $1 AND run_id = $2";

/// The run ends, or waits without anybody at work; its sessions with it.
async fn finish(tx: &Tx<'_>, claim: &Claim, status: RunStatus, end: &End) -> Result<(), StoreError> {
    let is_final = status.is_final();
    let result = is_final.then(|| Value::json(end)).transpose()?;
    let finished_at = is_final.then(|| tx.now());
    tx.execute(FINISH, params![claim.run_id, status, result, finished_at]).await?;
    if is_final {
        tx.to_close().end_runs(1);
    }
    sessions::end(tx, claim.run_id, status).await
}
