//! Ends a run early, on request or because it cannot be read.

use baton_core::event::RunOutcome;
use baton_core::ledger::by_agent;
use baton_core::store::{AuditEntry, Cancel, Claim, Hop, HopOutcome, RunEndData, RunStatus, Step};
use baton_core::{AgentName, Event, EventKind, LedgerRow, RunId, StoreError, ThreadId, Visibility};
use serde_json::json;

use super::{NOT_FOUND, ledger, steps};
use crate::approvals;
use crate::audit;
use crate::budgets::settle;
use crate::insert::Changes;
use crate::journal;
use crate::patterns;
use crate::threads;
use crate::tx::Tx;
use crate::value::{Row, SqlValue, params, row_values};
use crate::work::park;

/// The fields that decide how a run is cancelled.
pub(super) struct RunToCancel {
    pub(super) thread_id: ThreadId,
    agent: AgentName,
    pub(super) status: RunStatus,
}

/// Locks the thread with its first statement: transactions then lock threads in the same order.
pub(super) async fn cancel(
    tx: &Tx<'_>,
    thread: ThreadId,
    run: RunId,
    how: Cancel,
) -> Result<RunStatus, StoreError> {
    let is_worked_on = lock(tx, thread, run).await?;
    let found = find(tx, run).await?;
    match found.status {
        status if status.is_final() => return Ok(status),
        RunStatus::Running if is_worked_on => ask(tx, run, how).await?,
        // A worker takes its closing turn.
        RunStatus::Waiting if how == Cancel::Stop => {
            ask(tx, run, how).await?;
            park::resume(tx, found.thread_id, run).await?;
            record(tx, &found, run, how, "requested")?;
            return Ok(RunStatus::Queued);
        }
        _ => end(tx, run, &found, None).await?,
    }
    record(tx, &found, run, how, if is_worked_on { "requested" } else { "cancelled" })?;
    Ok(if is_worked_on { RunStatus::Running } else { RunStatus::Cancelled })
}

fn record(
    tx: &Tx<'_>,
    found: &RunToCancel,
    run: RunId,
    how: Cancel,
    decision: &str,
) -> Result<(), StoreError> {
    let entry = audit::about(audit::entry("system", "run.cancel", decision), found.thread_id, Some(run));
    tx.audit(&AuditEntry { detail: json!({"how": how}), ..entry })
}

/// Ends a claimed run that cannot be read. Otherwise it would block the runs queued behind it.
pub(crate) async fn interrupt(tx: &Tx<'_>, claim: &Claim, reason: &str) -> Result<(), StoreError> {
    let agent = match find(tx, claim.run_id).await {
        Ok(found) => found.agent,
        Err(StoreError::Unreadable(_)) => AgentName::parse("baton").expect("a valid name"),
        Err(error) => return Err(error),
    };
    let found = RunToCancel { thread_id: claim.thread_id, agent, status: RunStatus::Running };
    end(tx, claim.run_id, &found, Some(reason)).await?;
    let entry = audit::entry("system", "run.end", RunStatus::Interrupted.word());
    tx.audit(&audit::about(entry, claim.thread_id, Some(claim.run_id)))
}

/// Replaces an unreadable value by its default.
fn default_if_unreadable<T: Default>(read: Result<T, StoreError>) -> Result<T, StoreError> {
    match read {
        Err(StoreError::Unreadable(_)) => Ok(T::default()),
        read => read,
    }
}

pub(super) async fn find(tx: &Tx<'_>, run: RunId) -> Result<RunToCancel, StoreError> {
    let sql = "SELECT thread_id, agent, status FROM runs WHERE tenant = $1 AND run_id = $2";
    let row = tx.first(sql, params![run]).await?.ok_or(NOT_FOUND)?;
    Ok(RunToCancel { thread_id: row.parse(0)?, agent: row.parse(1)?, status: row.choice(2)? })
}

const LOCK: &str = "
    UPDATE thread_work SET records = records WHERE tenant = $1 AND thread_id = $2
    RETURNING active_run, (SELECT s.lease_until FROM servers AS s WHERE s.owner = thread_work.owner)";

/// Locks the thread. Returns whether a worker with a valid lease executes this run.
async fn lock(tx: &Tx<'_>, thread: ThreadId, run: RunId) -> Result<bool, StoreError> {
    let row = tx.first(LOCK, params![thread]).await?.ok_or(NOT_FOUND)?;
    let is_active = row.optional(0, Row::parse)? == Some(run);
    let is_leased = row.optional(1, Row::time)?.is_some_and(|until| until >= tx.now());
    Ok(is_active && is_leased)
}

/// Sets the flag that the worker reads at its next heartbeat. `abort` is never weakened.
async fn ask(tx: &Tx<'_>, run: RunId, how: Cancel) -> Result<(), StoreError> {
    let sql = "
        UPDATE runs SET cancel = CASE WHEN cancel = 'abort' THEN cancel ELSE $3 END
        WHERE tenant = $1 AND run_id = $2";
    tx.execute(sql, params![run, how]).await.map(drop)
}

/// The hops to agents that were at work when the run ended.
fn open_hops(
    tx: &Tx<'_>,
    run: RunId,
    found: &RunToCancel,
    steps: &[Step],
    rows: &[LedgerRow],
    status: RunStatus,
) -> Vec<Hop> {
    let outcome = if status == RunStatus::Cancelled { HopOutcome::Cancelled } else { HopOutcome::Failed };
    let open = Hop::unfinished(found.thread_id, run, steps).into_iter();
    open.map(|(path, hop)| Hop { outcome, ..hop.ended(&path, rows, tx.now()) }).collect()
}

/// Increments the epoch, so that a slow worker is fenced.
const END: &str = "
    UPDATE thread_work
    SET last_seq = last_seq + 1,
        records = records + 1 + $5,
        queued = queued - $4,
        epoch = epoch + CASE WHEN active_run = $3 THEN 1 ELSE 0 END,
        owner = CASE WHEN active_run = $3 THEN NULL ELSE owner END,
        active_run = CASE WHEN active_run = $3 THEN NULL ELSE active_run END
    WHERE tenant = $1 AND thread_id = $2
    RETURNING last_seq, records, thread_number";

const ENDED: &str = "
    UPDATE runs
    SET status = $6, finished_at = $3, result = $4, first_seq = coalesce(first_seq, $5), last_seq = $5
    WHERE tenant = $1 AND run_id = $2";

/// Writes the last event of a run without a worker, and bills the interrupted model call. The run ends as interrupted with a
/// `reason`, as cancelled otherwise.
async fn end(tx: &Tx<'_>, run: RunId, found: &RunToCancel, reason: Option<&str>) -> Result<(), StoreError> {
    let was_queued = found.status == RunStatus::Queued;
    let steps = default_if_unreadable(steps::of_run(tx, run).await)?;
    let cut: Vec<LedgerRow> = steps.iter().filter_map(|step| Some(step.interrupted_call()?.row)).collect();
    let count = cut.len() as u64;
    let row = tx.first(END, params![found.thread_id, run, was_queued, count]).await?.ok_or(NOT_FOUND)?;
    let mut paid = Changes::of(found.thread_id);
    paid.insert(&ledger::INSERT, ledger::rows(run, row.count(1)? + 1 - count, &cut));
    tx.write(paid).await?;
    settle::settle(tx, run, &cut, true).await?;
    let usage = ledger::total(tx, run).await?;
    let rows = default_if_unreadable(ledger::of_run(tx, run).await)?;
    let by_agent = by_agent(&rows);
    let (status, end, kind) = match reason {
        Some(reason) => {
            let (code, message) = (RunStatus::Interrupted.word().to_owned(), reason.to_owned());
            let end = RunEndData {
                code: Some(code.clone()),
                message: Some(message.clone()),
                ..RunEndData::default()
            };
            (RunStatus::Interrupted, end, EventKind::RunFailed { code, message, usage, by_agent })
        }
        None => {
            let (outcome, sources) = (RunOutcome::Cancelled, Vec::new());
            let (limit, answered_by) = (None, None);
            let kind = EventKind::RunFinished { outcome, usage, limit, answered_by, sources, by_agent };
            (RunStatus::Cancelled, RunEndData::default(), kind)
        }
    };
    let event = Event {
        seq: row.count(0)?,
        thread_id: found.thread_id,
        run_id: run,
        at: tx.now(),
        agent: found.agent.clone(),
        path: found.agent.as_str().into(),
        visibility: Visibility::User,
        kind,
    };
    let mut changes = Changes::of(found.thread_id);
    changes
        .insert(&journal::INSERT, vec![journal::row_of_event(row.count(2)?, &event, row.count(1)? - count)?]);
    patterns::add_hops(&mut changes, row.count(2)?, &open_hops(tx, run, found, &steps, &rows, status));
    changes.execute(ENDED, row_values![run, tx.now(), SqlValue::json(&end)?, event.seq, status]);
    changes.execute(threads::USED, row_values![row.count(2)?, tx.now()]);
    tx.write(changes).await?;
    approvals::cancel_all(tx, run).await
}
