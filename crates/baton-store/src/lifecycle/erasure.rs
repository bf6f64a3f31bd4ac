//! Erasure of a user. A row of `erasures` is the request; it stays open until nothing of the user is left, so that a crash only delays
//! it.

use baton_core::store::{AuditEntry, Erasure};
use baton_core::{RunId, StoreError, ThreadId, UserId};
use serde_json::json;
use uuid::Uuid;

use crate::audit;
use crate::closing::know_tenant;
use crate::job::JobSubject;
use crate::journal;
use crate::tenant::Tenant;
use crate::tx::Tx;
use crate::value::{Row, params};

/// Rows that one transaction changes.
const ROWS_AT_ONCE: u64 = 1000;

const OPEN: &str = "SELECT erasure_id, user_id, requested_at FROM erasures
    WHERE tenant = $1 AND finished_at IS NULL
    ORDER BY requested_at, erasure_id";

const REQUEST: &str =
    "INSERT INTO erasures (tenant, erasure_id, user_id, pseudonym, requested_at) VALUES ($1, $2, $3, $4, $5)";

/// Access ends with the request.
const ACCESS: [&str; 2] = [
    "DELETE FROM api_keys WHERE tenant = $1 AND user_id = $2",
    "DELETE FROM idempotency WHERE tenant = $1 AND user_id = $2",
];

pub(super) async fn begin(tx: &Tx<'_>, user: &UserId, entry: &AuditEntry) -> Result<Erasure, StoreError> {
    if let Some(open) = open(tx).await?.into_iter().find(|open| open.user_id == *user) {
        return Ok(open);
    }
    let (erasure_id, requested_at) = (Uuid::new_v4(), tx.now());
    let pseudonym = format!("erased-{}", Uuid::new_v4().simple());
    know_tenant(tx).await?;
    tx.execute(REQUEST, params![erasure_id, user, pseudonym, requested_at]).await?;
    for sql in ACCESS {
        tx.execute(sql, params![user]).await?;
    }
    tx.audit(&AuditEntry { detail: json!({ "erasure_id": erasure_id }), ..entry.clone() })?;
    Ok(Erasure { erasure_id, user_id: user.clone(), requested_at })
}

pub(super) async fn open(tx: &Tx<'_>) -> Result<Vec<Erasure>, StoreError> {
    let read = |row: &Row| {
        Ok(Erasure { erasure_id: row.parse(0)?, user_id: row.parse(1)?, requested_at: row.time(2)? })
    };
    tx.query(OPEN, &[]).await?.iter().map(read).collect()
}

/// The steps after the threads are deleted, each repeatable.
pub(super) async fn finish(tenant: &Tenant, erasure: Uuid) -> Result<(), StoreError> {
    let found = tenant.read(erasure, |tx, erasure| Box::pin(find(tx, *erasure))).await?;
    let Some(request) = found else { return Ok(()) };
    let decisions = tenant.read(request.clone(), |tx, request| Box::pin(decisions(tx, request))).await?;
    for decided in decisions {
        let input = (request.clone(), decided);
        let rename = tenant.write(JobSubject::Thread(decided.thread), input, |tx, (request, decided)| {
            Box::pin(rename_decision(tx, request, *decided))
        });
        rename.await?;
    }
    loop {
        let renamed = tenant
            .write(JobSubject::Tenant, request.clone(), |tx, request| Box::pin(rename_costs(tx, request)));
        if renamed.await? == 0 {
            break;
        }
    }
    tenant.write(JobSubject::Tenant, request, |tx, request| Box::pin(complete(tx, request))).await
}

#[derive(Debug, Clone)]
struct ErasureRequest {
    erasure_id: Uuid,
    user: UserId,
    pseudonym: String,
    requested_at: i64,
}

const FIND: &str = "SELECT user_id, pseudonym, requested_at FROM erasures
    WHERE tenant = $1 AND erasure_id = $2 AND finished_at IS NULL";

async fn find(tx: &Tx<'_>, erasure_id: Uuid) -> Result<Option<ErasureRequest>, StoreError> {
    let read = |row: Row| {
        let (user, pseudonym, requested_at) = (row.parse(0)?, row.text(1)?.to_owned(), row.int(2)?);
        Ok(ErasureRequest { erasure_id, user, pseudonym, requested_at })
    };
    tx.first(FIND, params![erasure_id]).await?.map(read).transpose()
}

/// A decision that the user made about a call in another user's thread.
#[derive(Debug, Clone, Copy)]
struct DecisionElsewhere {
    approval: Uuid,
    thread: ThreadId,
    run: RunId,
}

/// `replace` finds a text in both databases, whatever characters it has.
const DECISIONS: &str = "SELECT approval_id, thread_id, run_id FROM approvals
    WHERE tenant = $1 AND outcome IS NOT NULL AND replace(outcome, $2, '') <> outcome";

async fn decisions(tx: &Tx<'_>, request: &ErasureRequest) -> Result<Vec<DecisionElsewhere>, StoreError> {
    let read = |row: &Row| {
        Ok(DecisionElsewhere { approval: row.parse(0)?, thread: row.parse(1)?, run: row.parse(2)? })
    };
    tx.query(DECISIONS, params![decided_by(request.user.as_str())]).await?.iter().map(read).collect()
}

/// How a decision names its author, in approvals, events and steps.
fn decided_by(user: &str) -> String {
    format!("\"decided_by\":{}", json!(user))
}

const RENAME_OUTCOME: &str =
    "UPDATE approvals SET outcome = replace(outcome, $3, $4) WHERE tenant = $1 AND approval_id = $2";

const ROWS_OF_RUN: &str = "SELECT thread_number, last_seq, record, content FROM journal
    WHERE tenant = $1 AND run_id = $3
        AND thread_number = (SELECT w.thread_number FROM thread_work AS w WHERE w.tenant = $1 AND w.thread_id = $2)";

const RENAME_IN_ROW: &str = "UPDATE journal SET content = $5
    WHERE tenant = $1 AND thread_number = $2 AND last_seq = $3 AND record = $4";

async fn rename_decision(
    tx: &Tx<'_>,
    request: &ErasureRequest,
    decided: DecisionElsewhere,
) -> Result<(), StoreError> {
    let DecisionElsewhere { approval, thread, run } = decided;
    let (name, pseudonym) = (decided_by(request.user.as_str()), decided_by(&request.pseudonym));
    tx.execute(RENAME_OUTCOME, params![approval, name.as_str(), pseudonym.as_str()]).await?;
    for row in tx.query(ROWS_OF_RUN, params![thread, run]).await? {
        let Some(content) = journal::replaced(&row, 3, &name, &pseudonym)? else { continue };
        tx.execute(RENAME_IN_ROW, params![row.int(0)?, row.int(1)?, row.int(2)?, content]).await?;
    }
    Ok(())
}

const RENAME_COSTS: &str = "UPDATE past_calls SET user_id = $3
    WHERE tenant = $1 AND user_id = $2 AND started_at <= (
        SELECT max(started_at) FROM (
            SELECT started_at FROM past_calls WHERE tenant = $1 AND user_id = $2 ORDER BY started_at LIMIT $4
        ) AS oldest)";

async fn rename_costs(tx: &Tx<'_>, request: &ErasureRequest) -> Result<u64, StoreError> {
    tx.execute(RENAME_COSTS, params![&request.user, request.pseudonym.as_str(), ROWS_AT_ONCE]).await
}

const THREADS_LEFT: &str =
    "SELECT 1 FROM threads WHERE tenant = $1 AND user_id = $2 AND created_at <= $3 LIMIT 1";

/// What the user left outside of threads.
const OF_USER: [&str; 3] = [
    "DELETE FROM feedback WHERE tenant = $1 AND user_id = $2",
    "DELETE FROM budget_accounts WHERE tenant = $1 AND scope = 'user' AND subject = $2",
    "DELETE FROM budget_reservations WHERE tenant = $1 AND scope = 'user' AND subject = $2",
];

/// The skills and agents that the user saved are the tenant's, and stay.
const RENAME_AUTHOR: [&str; 2] = [
    "UPDATE skills SET user_id = $3 WHERE tenant = $1 AND user_id = $2",
    "UPDATE created_agents SET user_id = $3 WHERE tenant = $1 AND user_id = $2",
];

/// Cached results of agents may repeat what the user wrote, and do not say of whom they are.
const CACHE: &str = "DELETE FROM results WHERE tenant = $1";

const COMPLETE: &str =
    "UPDATE erasures SET user_id = NULL, finished_at = $3 WHERE tenant = $1 AND erasure_id = $2";

async fn complete(tx: &Tx<'_>, request: &ErasureRequest) -> Result<(), StoreError> {
    let ErasureRequest { erasure_id, user, pseudonym, requested_at } = request;
    if tx.first(THREADS_LEFT, params![user, *requested_at]).await?.is_some() {
        return Err(StoreError::Conflict("the erasure"));
    }
    for sql in ACCESS.into_iter().chain(OF_USER) {
        tx.execute(sql, params![user]).await?;
    }
    for sql in RENAME_AUTHOR {
        tx.execute(sql, params![user, pseudonym.as_str()]).await?;
    }
    tx.execute(CACHE, &[]).await?;
    audit::forget_name(tx, user.as_str()).await?;
    tx.execute(COMPLETE, params![*erasure_id, tx.now()]).await?;
    let entry = audit::entry("system", "user.erase", "completed");
    tx.audit(&AuditEntry { detail: json!({ "erasure_id": erasure_id }), ..entry })
}
