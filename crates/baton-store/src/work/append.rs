//! Appends: the results of a run, written atomically.

use baton_core::store::work::RunEnd;
use baton_core::store::{Append, Appended, Claim, Claimed, RunStatus, SpooledOutput};
use baton_core::{HandoffId, RunId, StoreError};
use jiff::SignedDuration;

use super::{claim, park};
use crate::budgets::settle;
use crate::insert::Changes;
use crate::once::{self, StoredTexts};
use crate::runs::ledger;
use crate::threads::{self, history};
use crate::tx::Tx;
use crate::value::{Row, params, row_values};
use crate::{approvals, artifacts, handoffs, journal, outputs, patterns};

pub(super) async fn append(tx: &Tx<'_>, claim: &Claim, append: &Append) -> Result<Appended, StoreError> {
    if append.end.as_ref().is_some_and(|end| !end.status.is_final() && end.status != RunStatus::Waiting) {
        return Err(StoreError::Conflict("the status of a run that ends"));
    }
    let Some(numbers) = reserve(tx, claim, append).await? else {
        return repeated(tx, claim, append).await;
    };
    let mut changes = Changes::of(claim.thread_id);
    let texts = rows(&mut changes, claim, append, &numbers)?;
    let parks = append.end.as_ref().is_some_and(|end| end.status == RunStatus::Waiting);
    if let Some(end) = append.end.as_ref().filter(|_| !parks) {
        finish(tx, &mut changes, claim, &numbers, append, end, &texts)?;
    } else if let Some(agent) = &append.agent {
        changes.execute(AGENT, row_values![claim.run_id, agent]);
    }
    patterns::add_hops(&mut changes, numbers.thread, &append.hops);
    tx.write(changes).await?;
    for change in &append.handoffs {
        handoffs::change(tx, change).await?;
    }
    if append.settles_budgets {
        settle::settle(tx, claim.run_id, &append.rows, append.end.is_some()).await?;
    }
    if !append.approvals.is_empty() || !append.closed_approvals.is_empty() {
        approvals::append(tx, claim, append).await?;
    }
    let mut appended = Appended { first_seq: numbers.event, queued: numbers.queued, next: None };
    if parks && park::park(tx, claim, numbers.thread, append).await? {
        appended.queued += 1;
    }
    if append.end.is_some() && append.claim_next && appended.queued > 0 {
        appended.next = next(tx, claim, &numbers, append).await?.map(Box::new);
        appended.queued -= 1;
    }
    tx.audit_run(claim.thread_id, numbers.thread, &append.audit)?;
    Ok(appended)
}

/// The numbers of the first event and message of an append, and of its first record: the journal's, then those of the ledger.
pub(crate) struct Numbers {
    /// That of the thread.
    pub(crate) thread: u64,
    pub(crate) event: u64,
    pub(super) message: u64,
    pub(crate) record: u64,
    pub(super) queued: u64,
    pub(super) last_handoff: Option<HandoffId>,
}

/// How many records of its thread an append takes.
pub(crate) fn records(append: &Append) -> u64 {
    1 + append.rows.len() as u64
}

/// Adds the rows of an append to `changes`. Returns the texts of its messages.
pub(super) fn rows(
    changes: &mut Changes,
    claim: &Claim,
    append: &Append,
    numbers: &Numbers,
) -> Result<StoredTexts, StoreError> {
    let (thread, run) = (numbers.thread, claim.run_id);
    let texts = StoredTexts::of(run, numbers.message, &append.messages)?;
    changes.insert(&history::INSERT, history::rows(thread, numbers.message, &append.messages)?);
    changes.insert(&journal::INSERT, journal::row(claim, numbers, append, &texts)?.into_iter().collect());
    changes.insert(&ledger::INSERT, ledger::rows(run, numbers.record + 1, &append.rows));
    changes.insert(&outputs::INSERT, outputs::rows(run, &append.outputs));
    changes.insert(&artifacts::INSERT, artifacts::rows(claim, &append.artifacts));
    Ok(texts)
}

/// One statement checks that the claim is valid and that this append is the next, reserves its numbers, and ends the claim if
/// the run ends.
const RESERVE: &str = "
    UPDATE thread_work
    SET last_seq = last_seq + $7, messages = messages + $8, records = records + $9, bytes = bytes + $12,
        appended = $6, appended_run = $3, appended_seq = last_seq + 1,
        holder = CASE WHEN handoff_id IS NULL THEN coalesce($10, holder) ELSE holder END,
        active_run = CASE WHEN CAST($11 AS BIGINT) = 1 THEN NULL ELSE active_run END,
        owner = CASE WHEN CAST($11 AS BIGINT) = 1 THEN NULL ELSE owner END
    WHERE tenant = $1 AND thread_id = $2 AND active_run = $3 AND owner = $4 AND epoch = $5
        AND appended + 1 = $6
    RETURNING last_seq, messages, records, queued, last_handoff, thread_number";

async fn reserve(tx: &Tx<'_>, claim: &Claim, append: &Append) -> Result<Option<Numbers>, StoreError> {
    if !tx.is_postgres() {
        return reserve_found(tx, claim, append).await;
    }
    let Claim { thread_id, run_id, owner, epoch } = claim;
    let (events, messages, records) = counts(append);
    let (holder, ends) = (append.holder.as_ref(), append.end.is_some());
    let (owner, number) = (&*owner.0, append.number);
    let bytes = bytes(append);
    let params =
        params![*thread_id, *run_id, owner, *epoch, number, events, messages, records, holder, ends, bytes];
    let Some(row) = tx.first(RESERVE, params).await? else { return Ok(None) };
    Ok(Some(Numbers {
        event: row.count(0)? + 1 - events,
        message: row.count(1)? + 1 - messages,
        record: row.count(2)? + 1 - records,
        queued: row.count(3)?,
        last_handoff: row.optional(4, Row::parse)?,
        thread: row.count(5)?,
    }))
}

/// How many events, messages and records an append adds to its thread.
fn counts(append: &Append) -> (u64, u64, u64) {
    (append.events.len() as u64, append.messages.len() as u64, records(append))
}

/// How many bytes an append adds to the sum of its thread.
fn bytes(append: &Append) -> u64 {
    let outputs = append.outputs.iter().map(SpooledOutput::size).sum::<u64>();
    let artifacts = append.artifacts.iter().map(|new| new.bytes.len() as u64).sum::<u64>();
    history::bytes(&append.messages) + outputs + artifacts
}

const FOUND: &str = "SELECT last_seq, messages, records, queued, last_handoff, thread_number
    FROM thread_work
    WHERE tenant = $1 AND thread_id = $2 AND active_run = $3 AND owner = $4 AND epoch = $5 AND appended + 1 = $6";

const COUNT: &str = "
    UPDATE thread_work
    SET last_seq = $3, messages = $4, records = $5, appended = $6, appended_run = $7, appended_seq = $8,
        holder = CASE WHEN handoff_id IS NULL THEN coalesce($9, holder) ELSE holder END, active_run = $10, owner = $11,
        bytes = bytes + $12
    WHERE tenant = $1 AND thread_number = $2";

/// Same as [`reserve`], for SQLite: nothing else can change the thread between the two statements, and the second one finds its
/// row by number. `RETURNING` would fill a temporary table.
async fn reserve_found(tx: &Tx<'_>, claim: &Claim, append: &Append) -> Result<Option<Numbers>, StoreError> {
    let Claim { thread_id, run_id, owner, epoch } = claim;
    let (run, owner) = (*run_id, &*owner.0);
    let params = params![*thread_id, run, owner, *epoch, append.number];
    let Some(row) = tx.first(FOUND, params).await? else { return Ok(None) };
    let numbers = Numbers {
        event: row.count(0)? + 1,
        message: row.count(1)? + 1,
        record: row.count(2)? + 1,
        queued: row.count(3)?,
        last_handoff: row.optional(4, Row::parse)?,
        thread: row.count(5)?,
    };
    let (events, messages, records) = counts(append);
    let last_seq = numbers.event + events - 1;
    let (last_message, last_record) = (numbers.message + messages - 1, numbers.record + records - 1);
    let (active, owner) = if append.end.is_some() { (None, None) } else { (Some(run), Some(owner)) };
    let holder = append.holder.as_ref();
    let params = params![
        numbers.thread,
        last_seq,
        last_message,
        last_record,
        append.number,
        run,
        numbers.event,
        holder,
        active,
        owner,
        bytes(append)
    ];
    tx.execute(COUNT, params).await?;
    Ok(Some(numbers))
}

/// Finds a repeated append. Its claim may have ended with this append, or the next run may have been claimed, or that run was
/// unreadable and has ended too.
const REPEATED: &str = "SELECT appended_seq, queued, epoch, active_run, last_handoff FROM thread_work
    WHERE tenant = $1 AND thread_id = $2 AND appended_run = $3
        AND ((epoch = $4 AND appended = $5) OR (epoch = $4 + 1 AND appended = 0 AND owner = $6)
            OR (epoch = $4 + 2 AND appended = 0 AND owner IS NULL AND active_run IS NULL))";

/// Returns the result of an append that was already written. Fails with `Fenced` if another process owns the thread now.
async fn repeated(tx: &Tx<'_>, claim: &Claim, append: &Append) -> Result<Appended, StoreError> {
    let Claim { thread_id, run_id, owner, epoch } = claim;
    let params = params![*thread_id, *run_id, *epoch, append.number, &*owner.0];
    let row = tx.first(REPEATED, params).await?.ok_or(StoreError::Fenced)?;
    let (first_seq, queued, found) = (row.count(0)?, row.count(1)?, row.count(2)?);
    let has_next = found > *epoch;
    if has_next && !(append.claim_next && append.end.is_some()) {
        return Err(StoreError::Fenced);
    }
    let next = match row.optional(3, Row::parse)? {
        Some(run_id) if has_next => {
            let claim = Claim { run_id, epoch: found, ..claim.clone() };
            Some(Box::new(claim::claimed(tx, claim, row.optional(4, Row::parse)?).await?))
        }
        _ => None,
    };
    Ok(Appended { first_seq, queued, next })
}

/// Keeps the ended run and the number of its last append's first event, so that this append can be repeated.
const TAKE_NEXT: &str = "
    UPDATE thread_work SET epoch = epoch + 1, owner = $3, appended = 0 WHERE tenant = $1 AND thread_id = $2";

/// Claims the next queued run. This transaction has written the thread's row, so it holds its lock.
async fn next(
    tx: &Tx<'_>,
    claim: &Claim,
    numbers: &Numbers,
    append: &Append,
) -> Result<Option<Claimed>, StoreError> {
    tx.execute(TAKE_NEXT, params![claim.thread_id, &*claim.owner.0]).await?;
    let last_seq = numbers.event + append.events.len() as u64 - 1;
    let run_id = claim::begin(tx, claim.thread_id, numbers.thread, last_seq).await?;
    let next = Claim { run_id, epoch: claim.epoch + 1, ..claim.clone() };
    claim::claimed_or_interrupted(tx, next, numbers.last_handoff).await
}

const FINISH: &str = "
    UPDATE runs SET status = $3, result = $4, text_of = $5, finished_at = $6, last_seq = $7
    WHERE tenant = $1 AND run_id = $2";

/// With the agent that the run is of from now on.
const FINISH_AS: &str = "
    UPDATE runs SET status = $3, result = $4, text_of = $5, finished_at = $6, last_seq = $7, agent = $8
    WHERE tenant = $1 AND run_id = $2";

const AGENT: &str = "UPDATE runs SET agent = $3 WHERE tenant = $1 AND run_id = $2";

/// Ends the run.
fn finish(
    tx: &Tx<'_>,
    changes: &mut Changes,
    claim: &Claim,
    numbers: &Numbers,
    append: &Append,
    end: &RunEnd,
    texts: &StoredTexts,
) -> Result<(), StoreError> {
    let RunEnd { status, end } = end;
    let last_seq = numbers.event + append.events.len() as u64 - 1;
    let ([result], text_of) = texts.refer([once::to_json(end)?]);
    let mut values = row_values![claim.run_id, *status, result, text_of, tx.now(), last_seq];
    match &append.agent {
        Some(agent) => {
            values.push(agent.into());
            changes.execute(FINISH_AS, values);
        }
        None => changes.execute(FINISH, values),
    }
    if !was_used_just_now(tx, claim.run_id) {
        changes.execute(threads::USED, row_values![numbers.thread, tx.now()]);
    }
    Ok(())
}

/// Whether [`threads::USED`] would change nothing, because the run was accepted less than a second ago: its id has the time. Servers
/// that share a database may have other clocks than it.
fn was_used_just_now(tx: &Tx<'_>, run: RunId) -> bool {
    let created = run.as_uuid().get_timestamp().map(|at| at.to_unix());
    let now = tx.now().as_duration();
    !tx.is_postgres()
        && created.is_some_and(|(secs, nanos)| {
            let age = now.saturating_sub(SignedDuration::new(secs.cast_signed(), nanos.cast_signed()));
            !age.is_negative() && age < SignedDuration::from_secs(1)
        })
}
