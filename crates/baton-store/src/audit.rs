//! The audit trail: a chain of entries per tenant. [`chain`] says what binds them, [`verify`] whether they still hold.

mod chain;
mod verify;

use std::sync::PoisonError;

use baton_core::store::{Audit, AuditEntry, AuditQuery, Audited, Page, PageRequest, Pending, Verdict};
use baton_core::{RunId, StoreError, ThreadId};
use serde_json::Value as Json;

use crate::job::About;
use crate::page;
use crate::tenant::{Tenant, refused};
use crate::tx::Tx;
use crate::value::{Row, Value, params};

impl Audit for Tenant {
    fn record(&self, entry: AuditEntry) -> Pending<'_, ()> {
        self.write(About::Tenant, entry, |tx, entry| {
            tx.audit(entry.clone());
            Box::pin(async { Ok(()) })
        })
    }

    fn audit(&self, query: AuditQuery, page: PageRequest) -> Pending<'_, Page<Audited>> {
        match page::number(&page) {
            Ok(after) => self.read((query, page, after), |tx, (query, page, after)| {
                Box::pin(list(tx, query, page, *after))
            }),
            Err(error) => refused(error),
        }
    }

    fn verify_audit(&self) -> Pending<'_, Verdict> {
        self.read((), |tx, ()| Box::pin(verify::verify(tx)))
    }
}

/// Who has done what, when nothing else is to be said about it.
pub(crate) fn entry(actor: &str, action: &str, decision: &str) -> AuditEntry {
    AuditEntry {
        actor: actor.to_owned(),
        on_behalf_of: None,
        action: action.to_owned(),
        thread_id: None,
        run_id: None,
        decision: decision.to_owned(),
        trace_id: None,
        detail: Json::Null,
    }
}

/// The same about a thread and perhaps one of its runs.
pub(crate) fn about(entry: AuditEntry, thread: ThreadId, run: Option<RunId>) -> AuditEntry {
    AuditEntry { thread_id: Some(thread), run_id: run, ..entry }
}

const ALL: &str = "SELECT number, at, entry, hash
    FROM audit
    WHERE tenant = $1 AND number > $2 AND at >= $3
        AND (CAST($4 AS TEXT) IS NULL OR actor = $4)
        AND (CAST($5 AS TEXT) IS NULL OR action = $5)
    ORDER BY number
    LIMIT $6";

const OF_THREAD: &str = "SELECT number, at, entry, hash
    FROM audit
    WHERE tenant = $1 AND number > $2 AND at >= $3
        AND (CAST($4 AS TEXT) IS NULL OR actor = $4)
        AND (CAST($5 AS TEXT) IS NULL OR action = $5)
        AND thread_id = $7
    ORDER BY number
    LIMIT $6";

async fn list(
    tx: &Tx<'_>,
    query: &AuditQuery,
    page: &PageRequest,
    after: u64,
) -> Result<Page<Audited>, StoreError> {
    let since = query.since.map_or(Value::Int(i64::MIN), Value::from);
    let (actor, action) = (query.actor.as_deref(), query.action.as_deref());
    let limit = page::with_next(page);
    let rows = match query.thread_id {
        Some(thread) => tx.query(OF_THREAD, params![after, since, actor, action, limit, thread]).await?,
        None => tx.query(ALL, params![after, since, actor, action, limit]).await?,
    };
    let entries = rows.iter().map(read).collect::<Result<Vec<Audited>, _>>()?;
    Ok(page::cut(entries, page.size(), |last| last.number.to_string()))
}

fn read(row: &Row) -> Result<Audited, StoreError> {
    Ok(Audited {
        number: row.count(0)?,
        at: row.time(1)?,
        entry: row.json(2)?,
        hash: row.text(3)?.to_owned(),
    })
}

/// Remembers that there is such a tenant.
pub(crate) async fn know_tenant(tx: &Tx<'_>) -> Result<(), StoreError> {
    let sql = "INSERT INTO tenants (tenant, created_at) VALUES ($1, $2) ON CONFLICT (tenant) DO NOTHING";
    tx.execute(sql, params![tx.now()]).await.map(drop)
}

const INSERT: &str = "
    INSERT INTO audit (tenant, number, at, actor, action, thread_id, entry, hash)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";

/// Chains and writes what the jobs of this transaction added. Called once, right before the commit: the end of the chain is
/// one row per tenant, and everyone who writes to it waits for the one before.
pub(crate) async fn flush(tx: &Tx<'_>) -> Result<(), StoreError> {
    let entries = std::mem::take(&mut *tx.audit.lock().unwrap_or_else(PoisonError::into_inner));
    if entries.is_empty() {
        return Ok(());
    }
    know_tenant(tx).await?;
    let sql = "
        UPDATE tenants SET audit_entries = audit_entries + $2 WHERE tenant = $1
        RETURNING audit_entries, audit_head";
    let end = tx.first(sql, params![entries.len() as u64]).await?;
    let end = end.ok_or_else(|| StoreError::Failed("the tenant is gone".to_owned()))?;
    let mut head = end.text(1)?.to_owned();
    let first = end.count(0)? + 1 - entries.len() as u64;
    let mut rows = Vec::with_capacity(entries.len());
    for (number, entry) in (first..).zip(&entries) {
        let text = chain::canonical(entry)?;
        head = chain::link(&head, number, tx.now(), &text);
        let (actor, action) = (entry.actor.as_str(), entry.action.as_str());
        rows.push(params![number, tx.now(), actor, action, entry.thread_id, text, head.as_str()].to_vec());
    }
    tx.execute_each(INSERT, rows).await?;
    let sql = "UPDATE tenants SET audit_head = $2 WHERE tenant = $1";
    tx.execute(sql, params![head]).await.map(drop)
}
