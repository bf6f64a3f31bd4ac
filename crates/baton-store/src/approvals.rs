//! Approvals: decisions that a run waits for.

use baton_core::store::{
    Approval, ApprovalFilter, ApprovalQuery, ApprovalStatus, Approvals, Page, PageRequest, Pending, micros,
};
use baton_core::{StoreError, UserId};
use uuid::Uuid;

use crate::job::JobSubject;
use crate::page::{self, Ordered, PageCursor};
use crate::tenant::{Tenant, refused};
use crate::tx::Tx;
use crate::value::{Row, SqlValue, params};
use crate::{runs, threads};

impl Approvals for Tenant {
    fn ask(&self, approval: Approval) -> Pending<'_, Approval> {
        self.write(JobSubject::Thread(approval.thread_id), approval, |tx, approval| {
            Box::pin(ask(tx, approval))
        })
    }

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

    fn decide(
        &self,
        approval: Uuid,
        status: ApprovalStatus,
        by: &UserId,
        reason: Option<&str>,
    ) -> Pending<'_, Approval> {
        let decision =
            ApprovalDecision { approval, status, by: by.clone(), reason: reason.map(str::to_owned) };
        self.write(JobSubject::Tenant, decision, |tx, decision| Box::pin(decide(tx, decision)))
    }
}

struct ApprovalDecision {
    approval: Uuid,
    status: ApprovalStatus,
    by: UserId,
    reason: Option<String>,
}

/// An overdue approval reads as `expired` even before [`sweep`](crate::sweep) updates its row.
macro_rules! status {
    () => {
        "CASE WHEN status = 'pending' AND expires_at <= $2 THEN 'expired' ELSE status END"
    };
}

macro_rules! approvals {
    ($($which:tt)+) => {
        concat!(
            "SELECT approval_id, thread_id, run_id, path, tool, arguments, risk, ", status!(), ", created_at, expires_at,
                decided_at, decided_by, reason
            FROM approvals
            WHERE tenant = $1 AND ",
            $($which)+
        )
    };
}

const ONE: &str = approvals!("approval_id = $3");

const OF_PATH: &str = approvals!("run_id = $3 AND path = $4");

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

/// Served by a partial index, so the cost depends on the open approvals only.
const PENDING: Ordered =
    list!("status = 'pending' AND expires_at > $2 AND (CAST($5 AS TEXT) IS NULL OR user_id = $5)");

/// Locks the run's row, so that the run is not deleted before its approval is inserted.
const HOLD: &str = "
    UPDATE runs SET attempts = attempts WHERE tenant = $1 AND run_id = $2 AND thread_id = $3
    RETURNING user_id";

const ASK: &str = "
    INSERT INTO approvals
        (tenant, approval_id, thread_id, user_id, run_id, path, tool, arguments, risk, status, created_at,
        expires_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'pending', $10, $11)
    ON CONFLICT DO NOTHING";

async fn ask(tx: &Tx<'_>, new: &Approval) -> Result<Approval, StoreError> {
    let Some(run) = tx.first(HOLD, params![new.run_id, new.thread_id]).await? else {
        threads::must_exist(tx, new.thread_id).await?;
        return Err(runs::NOT_FOUND);
    };
    let (path, tool) = (new.path.as_str(), new.tool.as_str());
    let arguments = SqlValue::json(&new.arguments)?;
    let (id, created_at, expires_at) = (new.approval_id, new.created_at, new.expires_at);
    let (thread, user, risk) = (new.thread_id, run.text(0)?, new.risk);
    let params = params![id, thread, user, new.run_id, path, tool, arguments, risk, created_at, expires_at];
    tx.execute(ASK, params).await?;
    let kept = tx.first(OF_PATH, params![tx.now(), new.run_id, path]).await?;
    read(&kept.ok_or(StoreError::Conflict("the approval"))?)
}

async fn one(tx: &Tx<'_>, approval: Uuid) -> Result<Approval, StoreError> {
    let row = tx.first(ONE, params![tx.now(), approval]).await?;
    read(&row.ok_or(StoreError::NotFound("approval"))?)
}

async fn list(
    tx: &Tx<'_>,
    query: &ApprovalQuery,
    page: &PageRequest,
    after: &PageCursor,
) -> Result<Page<Approval>, StoreError> {
    let (now, at, id, limit) = (tx.now(), after.at, after.id, page::with_next(page));
    let order = query.order;
    let rows = match (query.status, query.user_id.as_ref()) {
        (Some(ApprovalFilter::Pending), user) => {
            tx.query(PENDING.sql(order), params![now, at, id, user, limit]).await?
        }
        (status, Some(user)) => {
            tx.query(OF_USER.sql(order), params![now, at, id, status, limit, user]).await?
        }
        (status, None) => tx.query(ALL.sql(order), params![now, at, id, status, limit]).await?,
    };
    let found = rows.iter().map(read).collect::<Result<Vec<Approval>, _>>()?;
    let cursor = |last: &Approval| PageCursor::cursor(micros(last.created_at), last.approval_id);
    Ok(page::cut(found, page.size(), |last| page::ordered(order, cursor(last))))
}

const DECIDE: &str = "
    UPDATE approvals SET status = $4, decided_at = $3, decided_by = $5, reason = $6
    WHERE tenant = $1 AND approval_id = $2 AND status = 'pending' AND expires_at > $3";

async fn decide(tx: &Tx<'_>, decision: &ApprovalDecision) -> Result<Approval, StoreError> {
    let is_decision = matches!(decision.status, ApprovalStatus::Approved | ApprovalStatus::Denied);
    let ApprovalDecision { approval, status, by, reason } = decision;
    let params = params![*approval, tx.now(), *status, by, reason.as_deref()];
    let is_decided = is_decision && tx.execute(DECIDE, params).await? > 0;
    let kept = one(tx, *approval).await?;
    if is_decided { Ok(kept) } else { Err(StoreError::Conflict("the approval")) }
}

fn read(row: &Row) -> Result<Approval, StoreError> {
    Ok(Approval {
        approval_id: row.parse(0)?,
        thread_id: row.parse(1)?,
        run_id: row.parse(2)?,
        path: row.text(3)?.to_owned(),
        tool: row.text(4)?.to_owned(),
        arguments: row.json(5)?,
        risk: row.choice(6)?,
        status: row.choice(7)?,
        created_at: row.time(8)?,
        expires_at: row.time(9)?,
        decided_at: row.optional(10, Row::time)?,
        decided_by: row.optional(11, Row::parse)?,
        reason: row.optional(12, Row::text)?.map(str::to_owned),
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
            (PENDING, "approvals_pending (tenant=? AND (created_at,approval_id)>(?,?))"),
        ] {
            assert_eq!(plan(list.asc), [format!("SEARCH approvals USING INDEX {index}")]);
            let backwards = index.replace('>', "<");
            assert_eq!(plan(list.desc), [format!("SEARCH approvals USING INDEX {backwards}")]);
        }
    }
}
