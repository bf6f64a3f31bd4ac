//! A run is to end before it is done.

use baton_core::event::Outcome;
use baton_core::ledger::by_agent;
use baton_core::store::{AuditEntry, Cancel, End, RunStatus};
use baton_core::{AgentName, Event, EventKind, LedgerRow, RunId, StoreError, ThreadId, Visibility};
use serde_json::json;

use super::{NOT_FOUND, ledger, steps};
use crate::audit;
use crate::insert::Changes;
use crate::threads::{self, events};
use crate::tx::Tx;
use crate::value::{Row, Value, params};

/// What decides how a run is cancelled.
struct Found {
    thread_id: ThreadId,
    agent: AgentName,
    status: RunStatus,
}

pub(super) async fn cancel(tx: &Tx<'_>, run: RunId, how: Cancel) -> Result<RunStatus, StoreError> {
    let found = find(tx, run).await?;
    if found.status.is_final() {
        return Ok(found.status);
    }
    let is_worked_on = lock(tx, &found, run).await?;
    // What was true before the lock need not be true any more.
    let found = find(tx, run).await?;
    match found.status {
        status if status.is_final() => return Ok(status),
        RunStatus::Running if is_worked_on => ask(tx, run, how).await?,
        status => end(tx, run, &found, status).await?,
    }
    let decision = if is_worked_on { "requested" } else { "cancelled" };
    let entry = audit::about(audit::entry("system", "run.cancel", decision), found.thread_id, Some(run));
    tx.audit(AuditEntry { detail: json!({"how": how}), ..entry });
    Ok(if is_worked_on { RunStatus::Running } else { RunStatus::Cancelled })
}

async fn find(tx: &Tx<'_>, run: RunId) -> Result<Found, StoreError> {
    let sql = "SELECT thread_id, agent, status FROM runs WHERE tenant = $1 AND run_id = $2";
    let row = tx.first(sql, params![run]).await?.ok_or(NOT_FOUND)?;
    Ok(Found { thread_id: row.parse(0)?, agent: row.parse(1)?, status: row.choice(2)? })
}

const LOCK: &str = "
    UPDATE thread_work SET records = records WHERE tenant = $1 AND thread_id = $2
    RETURNING active_run, (SELECT s.lease_until FROM servers AS s WHERE s.owner = thread_work.owner)";

/// Holds the thread and says whether a process works on this run.
async fn lock(tx: &Tx<'_>, found: &Found, run: RunId) -> Result<bool, StoreError> {
    let row = tx.first(LOCK, params![found.thread_id]).await?.ok_or(NOT_FOUND)?;
    let is_active = row.optional(0, Row::parse)? == Some(run);
    let is_leased = row.optional(1, Row::time)?.is_some_and(|until| until >= tx.now());
    Ok(is_active && is_leased)
}

/// The process that works on it hears of it with its next beat. A request to end it at once is not overruled by one that gives it
/// more time.
async fn ask(tx: &Tx<'_>, run: RunId, how: Cancel) -> Result<(), StoreError> {
    let sql = "
        UPDATE runs SET cancel = CASE WHEN cancel = 'abort' THEN cancel ELSE $3 END
        WHERE tenant = $1 AND run_id = $2";
    tx.execute(sql, params![run, how]).await.map(drop)
}

/// A higher epoch, so that a process that was only slow cannot write any more.
const END: &str = "
    UPDATE thread_work
    SET last_seq = last_seq + 1,
        records = records + $5,
        queued = queued - $4,
        epoch = epoch + CASE WHEN active_run = $3 THEN 1 ELSE 0 END,
        owner = CASE WHEN active_run = $3 THEN NULL ELSE owner END,
        active_run = CASE WHEN active_run = $3 THEN NULL ELSE active_run END
    WHERE tenant = $1 AND thread_id = $2
    RETURNING last_seq, records";

const ENDED: &str = "
    UPDATE runs
    SET status = 'cancelled', finished_at = $3, result = $4, first_seq = coalesce(first_seq, $5), last_seq = $5
    WHERE tenant = $1 AND run_id = $2";

/// Nobody else would write its last event, nor pay for the call that its process died in.
async fn end(tx: &Tx<'_>, run: RunId, found: &Found, status: RunStatus) -> Result<(), StoreError> {
    let was_queued = status == RunStatus::Queued;
    let cut: Vec<LedgerRow> =
        steps::of_run(tx, run).await?.iter().filter_map(|step| Some(step.call_under_way()?.row)).collect();
    let count = cut.len() as u64;
    let row = tx.first(END, params![found.thread_id, run, was_queued, count]).await?.ok_or(NOT_FOUND)?;
    let mut paid = Changes::default();
    paid.insert(&ledger::INSERT, ledger::rows(run, row.count(1)? + 1 - count, &cut));
    tx.write(paid).await?;
    let usage = ledger::total(tx, run).await?;
    let event = Event {
        seq: row.count(0)?,
        thread_id: found.thread_id,
        run_id: run,
        at: tx.now(),
        agent: found.agent.clone(),
        path: found.agent.as_str().into(),
        visibility: Visibility::User,
        kind: EventKind::RunFinished {
            outcome: Outcome::Cancelled,
            usage,
            limit: None,
            answered_by: None,
            sources: Vec::new(),
            by_agent: by_agent(&ledger::of_run(tx, run).await?),
        },
    };
    let mut changes = Changes::default();
    changes.insert(&events::INSERT, vec![events::row(&event)?]);
    changes.execute(ENDED, params![run, tx.now(), Value::json(&End::default())?, event.seq]);
    changes.execute(threads::USED, params![found.thread_id, tx.now()]);
    tx.write(changes).await
}
