//! Approvals: calls and questions that a run waits for a person to decide.

use baton_core::event::EventKind;
use baton_core::store::{
    Append, Approval, ApprovalFilter, ApprovalOutcome, ApprovalQuery, ApprovalStatus, Approvals, AuditEntry,
    Claim, Decision, Page, PageRequest, Pending, RememberedDecision, Revocation, micros,
};
use baton_core::{Event, RunId, StoreError, ThreadId};
use serde_json::json;
use uuid::Uuid;

use crate::audit;
use crate::insert::Changes;
use crate::job::JobSubject;
use crate::page::{self, Ordered, PageCursor};
use crate::runs::accept;
use crate::tenant::{Tenant, refused};
use crate::threads::{self, history};
use crate::tx::{ChangeOne, Tx, change_one};
use crate::value::{Row, SqlValue, params, row_values};
use crate::work::park;

impl Approvals for Tenant {
    fn approval(&self, approval: Uuid) -> Pending<'_, Approval> {
        self.read(approval, |tx, approval| Box::pin(one(tx, *approval)))
    }

    fn approvals(&self, query: ApprovalQuery, page: PageRequest) -> Pending<'_, Page<Approval>> {
        match PageCursor::in_order(&page, query.order) {
            Ok(after) => self.read((query, page, after), |tx, (query, page, after)| {
                Box::pin(list(tx, query, page, after))
            }),
            Err(error) => refused(error),
        }
    }

    fn run_approvals(&self, run: RunId) -> Pending<'_, Vec<Approval>> {
        self.read(run, |tx, run| {
            Box::pin(async { tx.query(OF_RUN, params![tx.now(), *run]).await?.iter().map(read).collect() })
        })
    }

    fn open_approvals(&self, thread: ThreadId) -> Pending<'_, Vec<Approval>> {
        self.read(thread, |tx, thread| {
            Box::pin(async { tx.query(OPEN, params![tx.now(), *thread]).await?.iter().map(read).collect() })
        })
    }

    fn remembered_decisions(&self, thread: ThreadId) -> Pending<'_, Vec<RememberedDecision>> {
        self.read(thread, |tx, thread| Box::pin(remembered(tx, *thread)))
    }

    fn forget_decisions(&self, revocation: Revocation) -> Pending<'_, bool> {
        let about = JobSubject::Thread(revocation.thread_id);
        self.write(about, revocation, |tx, revocation| Box::pin(forget(tx, revocation)))
    }

    fn decide(&self, decision: Decision) -> Pending<'_, Approval> {
        Box::pin(async move {
            let found = self.approval(decision.approval_id).await?;
            if found.outcome.status != ApprovalStatus::Pending {
                return Err(CONFLICT);
            }
            let about = JobSubject::Thread(found.thread_id);
            self.write(about, (found.thread_id, decision), |tx, (thread, decision)| {
                Box::pin(decide(tx, *thread, decision))
            })
            .await
        })
    }

    fn expire(&self, approval: Uuid) -> Pending<'_, Approval> {
        Box::pin(async move {
            let found = self.approval(approval).await?;
            if !is_overdue(&found) {
                return Ok(found);
            }
            let about = JobSubject::Thread(found.thread_id);
            self.write(about, (found.thread_id, approval), |tx, (thread, approval)| {
                Box::pin(expire(tx, *thread, *approval))
            })
            .await
        })
    }
}

/// An overdue approval reads as `expired` even before [`expire`] updates its row.
macro_rules! status {
    () => {
        "CASE WHEN status = 'pending' AND expires_at <= $2 THEN 'expired' ELSE status END"
    };
}

macro_rules! approvals {
    ($($which:tt)+) => {
        concat!(
            "SELECT request, thread_id, run_id, user_id, ", status!(), ", decided_at, outcome, remember
            FROM approvals
            WHERE tenant = $1 AND ",
            $($which)+
        )
    };
}

const ONE: &str = approvals!("approval_id = $3");

const OF_RUN: &str = approvals!("run_id = $3 ORDER BY created_at, approval_id");

const OPEN: &str = approvals!(
    "thread_id = $3 AND status = 'pending' AND expires_at > $2 ORDER BY created_at, approval_id LIMIT 1000"
);

macro_rules! list {
    ($($which:tt)+) => {
        Ordered {
            asc: approvals!(
                $($which)+,
                " AND (created_at, approval_id) > ($3, $4) ORDER BY created_at, approval_id LIMIT $6"
            ),
            desc: approvals!(
                $($which)+,
                " AND (created_at, approval_id) < ($3, $4) ORDER BY created_at DESC, approval_id DESC LIMIT $6"
            ),
        }
    };
}

/// Filter on `$5`: a status, `decided` for every status except `pending`, or null for all.
macro_rules! has_status {
    () => {
        concat!(
            "(CAST($5 AS TEXT) IS NULL OR CASE WHEN $5 = 'decided' THEN ",
            status!(),
            " <> 'pending' ELSE ",
            status!(),
            " = $5 END)"
        )
    };
}

const ALL: Ordered = list!(has_status!());

const OF_USER: Ordered = list!("user_id = $7 AND ", has_status!());

const OF_THREAD: Ordered =
    list!("thread_id = $7 AND (CAST($8 AS TEXT) IS NULL OR user_id = $8) AND ", has_status!());

/// Served by a partial index, so the cost depends on the open approvals only. `$5` is null: PostgreSQL needs its type.
const PENDING: Ordered = list!("status = 'pending' AND expires_at > $2 AND CAST($5 AS TEXT) IS NULL");

const PENDING_OF_USER: Ordered = list!("user_id = $5 AND status = 'pending' AND expires_at > $2");

const REMEMBERED: &str = "SELECT approval_id, tool, status FROM approvals
    WHERE tenant = $1 AND thread_id = $2 AND remember = 1
    ORDER BY tool, decided_at DESC";

const OWNER: &str = "SELECT user_id FROM thread_work WHERE tenant = $1 AND thread_id = $2";

const ASK: &str = "
    INSERT INTO approvals
        (tenant, approval_id, thread_id, user_id, run_id, kind, tool, request, status, created_at, expires_at,
        notify_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'pending', $9, $10, $11)
    ON CONFLICT DO NOTHING";

const CLOSE: &str = "
    UPDATE approvals SET status = $4, decided_at = $5, outcome = $6
    WHERE tenant = $1 AND approval_id = $2 AND thread_id = $3 AND status = 'pending'";

/// Writes what an append says about approvals. The append holds the thread's lock.
pub(crate) async fn append(tx: &Tx<'_>, claim: &Claim, append: &Append) -> Result<(), StoreError> {
    for (approval, outcome) in &append.closed_approvals {
        let decided = outcome.decided_by.as_ref().map(|_| SqlValue::json(outcome)).transpose()?;
        let params = params![*approval, claim.thread_id, outcome.status, tx.now(), decided];
        tx.execute(CLOSE, params).await?;
    }
    if append.approvals.is_empty() {
        return Ok(());
    }
    let owner = tx.first(OWNER, params![claim.thread_id]).await?.ok_or(StoreError::ThreadNotFound)?;
    for new in &append.approvals {
        let (id, thread, run, kind) = (new.approval_id, claim.thread_id, claim.run_id, new.kind);
        let (user, tool, request) = (owner.text(0)?, new.tool.as_str(), SqlValue::json(new)?);
        // The user of a workflow is in the conversation, so its questions are not notified.
        let notify_at = (!new.is_workflow_question()).then_some(0_u64);
        let (created_at, expires_at) = (new.created_at, new.expires_at);
        let params = params![id, thread, user, run, kind, tool, request, created_at, expires_at, notify_at];
        tx.execute(ASK, params).await?;
    }
    Ok(())
}

const CLOSE_ALL: &str = "
    UPDATE approvals SET status = 'cancelled', decided_at = $3
    WHERE tenant = $1 AND run_id = $2 AND status = 'pending'";

/// Closes the pending approvals of a run that has ended without a worker.
pub(crate) async fn cancel_all(tx: &Tx<'_>, run: RunId) -> Result<(), StoreError> {
    tx.execute(CLOSE_ALL, params![run, tx.now()]).await.map(drop)
}

const CLOSE_QUESTION: &str = "
    UPDATE approvals
    SET status = CASE WHEN expires_at <= $3 THEN 'expired' ELSE 'cancelled' END, decided_at = $3
    WHERE tenant = $1 AND approval_id = $2 AND status = 'pending'";

/// Closes the question of a workflow whose handoff has ended. The thread must be locked.
pub(crate) async fn close_question(tx: &Tx<'_>, question: Uuid) -> Result<(), StoreError> {
    tx.execute(CLOSE_QUESTION, params![question, tx.now()]).await.map(drop)
}

/// Refuses a message that answers a question of a workflow unless the question is open. Writes nothing.
pub(crate) async fn must_be_open(tx: &Tx<'_>, thread: ThreadId, question: Uuid) -> Result<(), StoreError> {
    let found = one(tx, question).await?;
    let is_open = found.outcome.status == ApprovalStatus::Pending
        && found.request.is_workflow_question()
        && found.thread_id == thread;
    if is_open { Ok(()) } else { Err(CONFLICT) }
}

/// Settles a question of a workflow with the message of `run`. The thread must be locked.
pub(crate) async fn answer(tx: &Tx<'_>, run: RunId, decision: &Decision) -> Result<(), StoreError> {
    let found = one(tx, decision.approval_id).await?;
    let outcome = ApprovalOutcome { answer_run_id: Some(run), ..outcome(tx, decision) };
    store_decision(tx, decision, &outcome).await?;
    record_decision(tx, decision, &found, &outcome)
}

const PENDING_OF_RUN: &str = "SELECT approval_id FROM approvals
    WHERE tenant = $1 AND run_id = $2 AND status = 'pending' AND expires_at > $3";

/// Whether all these approvals of a run still wait for a decision.
pub(crate) async fn are_pending(tx: &Tx<'_>, run: RunId, approvals: &[Uuid]) -> Result<bool, StoreError> {
    if approvals.is_empty() {
        return Ok(true);
    }
    let rows = tx.query(PENDING_OF_RUN, params![run, tx.now()]).await?;
    let pending = rows.iter().map(|row| row.parse(0)).collect::<Result<Vec<Uuid>, _>>()?;
    Ok(approvals.iter().all(|approval| pending.contains(approval)))
}

/// Adds to events of waiting runs the requests that they wait for. Those that are gone are left out.
pub(crate) async fn with_interrupts(tx: &Tx<'_>, events: &mut [Event]) -> Result<(), StoreError> {
    let mut known: Vec<Approval> = Vec::new();
    for event in events {
        let EventKind::RunWaiting { interrupts, waits_for, .. } = &mut event.kind else { continue };
        if !interrupts.is_empty() {
            continue;
        }
        if known.first().is_none_or(|one| one.run_id != event.run_id) {
            let rows = tx.query(OF_RUN, params![tx.now(), event.run_id]).await?;
            known = rows.iter().map(read).collect::<Result<_, _>>()?;
        }
        let request = |id: &Uuid| known.iter().find(|one| one.request.approval_id == *id);
        *interrupts = waits_for.iter().filter_map(request).map(|one| one.request.clone()).collect();
    }
    Ok(())
}

pub(crate) async fn one(tx: &Tx<'_>, approval: Uuid) -> Result<Approval, StoreError> {
    let row = tx.first(ONE, params![tx.now(), approval]).await?;
    read(&row.ok_or(NOT_FOUND)?)
}

const THREAD: &str = "SELECT thread_id FROM approvals WHERE tenant = $1 AND approval_id = $2";

impl Tenant {
    /// The thread of an approval. Jobs that change an approval are jobs of its thread.
    pub(crate) async fn thread_of_approval(&self, approval: Uuid) -> Result<Option<ThreadId>, StoreError> {
        let found = self.read(approval, |tx, approval| {
            Box::pin(async {
                tx.first(THREAD, params![*approval]).await?.map(|row| row.parse(0)).transpose()
            })
        });
        found.await
    }
}

/// Locks the thread of an approval, as the first statement of a job: transactions then lock threads in the same order.
async fn lock(tx: &Tx<'_>, thread: ThreadId) -> Result<(), StoreError> {
    park::lock(tx, thread).await.map_err(|error| match error {
        // Its approvals were deleted with it.
        StoreError::ThreadNotFound => NOT_FOUND,
        other => other,
    })
}

async fn list(
    tx: &Tx<'_>,
    query: &ApprovalQuery,
    page: &PageRequest,
    after: &PageCursor,
) -> Result<Page<Approval>, StoreError> {
    let (now, at, id, limit) = (tx.now(), after.at, after.id, page::with_next(page));
    let order = query.order;
    let rows = match (query.thread_id, query.status, query.user_id.as_ref()) {
        (Some(thread), status, user) => {
            tx.query(OF_THREAD.sql(order), params![now, at, id, status, limit, thread, user]).await?
        }
        (None, Some(ApprovalFilter::Pending), user) => {
            let sql = if user.is_some() { PENDING_OF_USER } else { PENDING };
            tx.query(sql.sql(order), params![now, at, id, user, limit]).await?
        }
        (None, status, Some(user)) => {
            tx.query(OF_USER.sql(order), params![now, at, id, status, limit, user]).await?
        }
        (None, status, None) => tx.query(ALL.sql(order), params![now, at, id, status, limit]).await?,
    };
    let found = rows.iter().map(read).collect::<Result<Vec<Approval>, _>>()?;
    let cursor =
        |last: &Approval| PageCursor::cursor(micros(last.request.created_at), last.request.approval_id);
    Ok(page::cut(found, page.size(), |last| page::ordered(order, cursor(last))))
}

async fn remembered(tx: &Tx<'_>, thread: ThreadId) -> Result<Vec<RememberedDecision>, StoreError> {
    let mut newest: Vec<RememberedDecision> = Vec::new();
    for row in tx.query(REMEMBERED, params![thread]).await? {
        let tool = row.text(1)?.to_owned();
        if newest.last().is_some_and(|known| known.tool == tool) {
            continue;
        }
        let is_approved = row.choice::<ApprovalStatus>(2)? == ApprovalStatus::Approved;
        newest.push(RememberedDecision { approval_id: row.parse(0)?, tool, is_approved });
    }
    Ok(newest)
}

const FORGET: &str = "
    UPDATE approvals SET remember = 0 WHERE tenant = $1 AND thread_id = $2 AND tool = $3 AND remember = 1";

async fn forget(tx: &Tx<'_>, revocation: &Revocation) -> Result<bool, StoreError> {
    let Revocation { thread_id, tool, by, trace_id } = revocation;
    park::lock(tx, *thread_id).await?;
    if tx.execute(FORGET, params![*thread_id, tool.as_str()]).await? == 0 {
        return Ok(false);
    }
    let entry = audit::about(audit::entry(by.as_str(), "approval.forget", "revoked"), *thread_id, None);
    tx.audit(&AuditEntry { detail: json!({ "tool": tool }), trace_id: trace_id.clone(), ..entry })?;
    Ok(true)
}

const NOT_FOUND: StoreError = StoreError::NotFound("approval");

const CONFLICT: StoreError = StoreError::Conflict("the approval");

const DECIDE: &str = "
    UPDATE approvals SET status = $4, decided_at = $3, outcome = $5, remember = $6
    WHERE tenant = $1 AND approval_id = $2 AND status = 'pending' AND expires_at > $3";

async fn decide(tx: &Tx<'_>, thread: ThreadId, decision: &Decision) -> Result<Approval, StoreError> {
    let Decision { approval_id, status, .. } = decision;
    let is_decision =
        matches!(status, ApprovalStatus::Approved | ApprovalStatus::Denied | ApprovalStatus::Answered);
    if !is_decision {
        return Err(CONFLICT);
    }
    lock(tx, thread).await?;
    let found = one(tx, *approval_id).await?;
    if found.request.is_workflow_question() {
        return Err(CONFLICT);
    }
    let outcome = outcome(tx, decision);
    if !accept::promise(tx, &decision.by, found.run_id, decision.idempotency.as_ref()).await? {
        return Err(StoreError::Conflict("the idempotency key"));
    }
    store_decision(tx, decision, &outcome).await?;
    if let Some(message) = &decision.message {
        let said = tx.change(&SAY, params![found.thread_id]).await?.ok_or(StoreError::ThreadNotFound)?;
        let (messages, thread) = (said.count(0)?, said.count(1)?);
        let mut changes = Changes::of(found.thread_id);
        changes.insert(&history::INSERT, history::rows(thread, messages, std::slice::from_ref(message))?);
        changes.execute(threads::USED, row_values![thread, tx.now()]);
        tx.write(changes).await?;
    }
    park::resume(tx, found.thread_id, found.run_id).await?;
    record_decision(tx, decision, &found, &outcome)?;
    Ok(Approval { outcome, ..found })
}

async fn store_decision(
    tx: &Tx<'_>,
    decision: &Decision,
    outcome: &ApprovalOutcome,
) -> Result<(), StoreError> {
    let (id, status) = (decision.approval_id, decision.status);
    let params = params![id, tx.now(), status, SqlValue::json(outcome)?, outcome.remember];
    match tx.execute(DECIDE, params).await? {
        0 => Err(CONFLICT),
        _ => Ok(()),
    }
}

fn record_decision(
    tx: &Tx<'_>,
    decision: &Decision,
    found: &Approval,
    outcome: &ApprovalOutcome,
) -> Result<(), StoreError> {
    let entry = entry(decision.by.as_str(), "approval.decide", found, outcome);
    tx.audit(&AuditEntry { trace_id: decision.trace_id.clone(), ..entry })
}

/// Counts a message of the thread.
const SAY: ChangeOne = change_one!(
    "messages, thread_number",
    "UPDATE thread_work SET messages = messages + 1 WHERE tenant = $1 AND thread_id = $2"
);

fn outcome(tx: &Tx<'_>, decision: &Decision) -> ApprovalOutcome {
    ApprovalOutcome {
        status: decision.status,
        // As exact as the column.
        decided_at: jiff::Timestamp::from_microsecond(micros(tx.now())).ok(),
        decided_by: Some(decision.by.clone()),
        reason: decision.reason.as_ref().map(|reason| reason.replace('\0', "")),
        edited: decision.edited.clone(),
        answer: decision.answer.clone(),
        answer_run_id: None,
        remember: decision.remember,
    }
}

const EXPIRE: &str = "
    UPDATE approvals SET status = 'expired', decided_at = $3
    WHERE tenant = $1 AND approval_id = $2 AND status = 'pending' AND expires_at <= $3";

/// Whether the time of an approval is over and its row does not say so yet.
fn is_overdue(approval: &Approval) -> bool {
    approval.outcome.status == ApprovalStatus::Expired && approval.outcome.decided_at.is_none()
}

async fn expire(tx: &Tx<'_>, thread: ThreadId, approval: Uuid) -> Result<Approval, StoreError> {
    lock(tx, thread).await?;
    let found = one(tx, approval).await?;
    if tx.execute(EXPIRE, params![approval, tx.now()]).await? > 0 {
        park::resume(tx, found.thread_id, found.run_id).await?;
        tx.audit(&entry("system", "approval.expire", &found, &found.outcome))?;
    }
    one(tx, approval).await
}

/// The audit entry of a decision. It has no arguments and no answer: they are content.
fn entry(actor: &str, action: &str, approval: &Approval, outcome: &ApprovalOutcome) -> AuditEntry {
    let request = &approval.request;
    let detail = json!({
        "approval_id": request.approval_id, "path": request.path, "tool": request.tool, "digest": request.digest,
        "edited": outcome.edited.is_some(), "remember": outcome.remember,
    });
    let entry = audit::entry(actor, action, outcome.status.word());
    AuditEntry { detail, ..audit::about(entry, approval.thread_id, Some(approval.run_id)) }
}

fn read(row: &Row) -> Result<Approval, StoreError> {
    let kept: Option<ApprovalOutcome> = row.optional(6, Row::json)?;
    let (status, decided_at) = (row.choice(4)?, row.optional(5, Row::time)?);
    Ok(Approval {
        request: row.json(0)?,
        thread_id: row.parse(1)?,
        run_id: row.parse(2)?,
        user_id: row.parse(3)?,
        outcome: ApprovalOutcome {
            status,
            decided_at,
            // Not that of the decision, which may have been revoked.
            remember: row.int(7)? == 1,
            ..kept.unwrap_or_else(ApprovalOutcome::pending)
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::history::tests::plan;

    #[test]
    fn a_list_reads_no_more_than_it_has_to() {
        for (list, index) in [
            (ALL, "approvals_by_time (tenant=? AND (created_at,approval_id)>(?,?))"),
            (OF_USER, "approvals_of_user (tenant=? AND user_id=? AND (created_at,approval_id)>(?,?))"),
            (OF_THREAD, "approvals_of_thread (tenant=? AND thread_id=? AND (created_at,approval_id)>(?,?))"),
            (PENDING, "approvals_pending (tenant=? AND (created_at,approval_id)>(?,?))"),
            (
                PENDING_OF_USER,
                "approvals_pending_of_user (tenant=? AND user_id=? AND (created_at,approval_id)>(?,?))",
            ),
        ] {
            assert_eq!(plan(list.asc), [format!("SEARCH approvals USING INDEX {index}")]);
            let backwards = index.replace('>', "<");
            assert_eq!(plan(list.desc), [format!("SEARCH approvals USING INDEX {backwards}")]);
        }
        assert_eq!(plan(OF_RUN), ["SEARCH approvals USING INDEX approvals_of_run (tenant=? AND run_id=?)"]);
        assert_eq!(plan(OPEN), ["SEARCH approvals USING INDEX approvals_open (tenant=? AND thread_id=?)"]);
        assert!(plan(REMEMBERED)[0].contains("approvals_remembered (tenant=? AND thread_id=?)"));
    }
}
