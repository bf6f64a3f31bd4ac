//! The audit trail: a chain of entries per tenant. [`chain`] says what binds them, [`verify`] whether they still hold.

mod chain;
mod verify;

use baton_core::store::{Audit, AuditEntry, AuditQuery, Audited, Page, PageRequest, Pending, Verdict};
use baton_core::{RunId, StoreError, ThreadId};
use jiff::Timestamp;
use serde_json::Value as Json;

use crate::job::About;
use crate::page;
use crate::tenant::{Tenant, refused};
use crate::tx::Tx;
use crate::value::{Row, params};

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

/// One text per question, so that the database sees which index answers it.
macro_rules! entries {
    ($which:literal) => {
        concat!(
            "SELECT number, at, entry, hash
            FROM audit
            WHERE tenant = $1 AND number > $2",
            $which,
            "
            ORDER BY number
            LIMIT $3"
        )
    };
}

const ALL: &str = entries!("");

const OF_THREAD: &str = entries!(
    " AND thread_id = $4 AND (CAST($5 AS TEXT) IS NULL OR actor = $5)
        AND (CAST($6 AS TEXT) IS NULL OR action = $6)"
);

const OF_ACTOR: &str = entries!(" AND actor = $4 AND (CAST($5 AS TEXT) IS NULL OR action = $5)");

const OF_ACTION: &str = entries!(" AND action = $4");

async fn list(
    tx: &Tx<'_>,
    query: &AuditQuery,
    page: &PageRequest,
    after: u64,
) -> Result<Page<Audited>, StoreError> {
    let after = after.max(before(tx, query.since).await?);
    let (actor, action, limit) = (query.actor.as_deref(), query.action.as_deref(), page::with_next(page));
    let rows = match (query.thread_id, actor, action) {
        (Some(thread), ..) => tx.query(OF_THREAD, params![after, limit, thread, actor, action]).await?,
        (None, Some(actor), _) => tx.query(OF_ACTOR, params![after, limit, actor, action]).await?,
        (None, None, Some(action)) => tx.query(OF_ACTION, params![after, limit, action]).await?,
        (None, None, None) => tx.query(ALL, params![after, limit]).await?,
    };
    let entries = rows.iter().map(read).collect::<Result<Vec<Audited>, _>>()?;
    Ok(page::cut(entries, page.size(), |last| last.number.to_string()))
}

const SINCE: &str = "SELECT number FROM audit WHERE tenant = $1 AND at >= $2 ORDER BY at, number LIMIT 1";

/// How many entries there were before a moment. Times do not go back, see [`write`].
async fn before(tx: &Tx<'_>, since: Option<Timestamp>) -> Result<u64, StoreError> {
    let Some(since) = since else { return Ok(0) };
    let first = tx.first(SINCE, params![since]).await?;
    first.map_or(Ok(u64::MAX), |row| Ok(row.count(0)?.saturating_sub(1)))
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

/// Chains and writes entries. `end` is where the trail ends now, with these counted: see [`closing`](crate::closing).
///
/// Transactions wait for each other here, so one that began earlier may come later. Times in the trail do not go back for that:
/// what happened since a moment is then found by its number.
pub(crate) async fn write(tx: &Tx<'_>, entries: &[AuditEntry], end: &Row) -> Result<(), StoreError> {
    if entries.is_empty() {
        return Ok(());
    }
    let mut head = end.text(2)?.to_owned();
    let at = tx.now().max(end.time(3)?);
    let first = end.count(1)? + 1 - entries.len() as u64;
    let mut rows = Vec::with_capacity(entries.len());
    for (number, entry) in (first..).zip(entries) {
        let text = chain::canonical(entry)?;
        head = chain::link(&head, number, at, &text);
        let (actor, action) = (entry.actor.as_str(), entry.action.as_str());
        rows.push(params![number, at, actor, action, entry.thread_id, text, head.as_str()].to_vec());
    }
    tx.execute_each(INSERT, rows).await?;
    let sql = "UPDATE tenants SET audit_head = $2, audit_at = $3 WHERE tenant = $1";
    tx.execute(sql, params![head, at]).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::history::tests::plan;

    #[test]
    fn a_list_reads_no_more_than_its_page() {
        for (sql, index) in [
            (ALL, "sqlite_autoindex_audit_1 (tenant=? AND number>?)"),
            (OF_THREAD, "audit_of_thread (tenant=? AND thread_id=? AND number>?)"),
            (OF_ACTOR, "audit_of_actor (tenant=? AND actor=? AND number>?)"),
            (OF_ACTION, "audit_of_action (tenant=? AND action=? AND number>?)"),
        ] {
            assert_eq!(plan(sql), [format!("SEARCH audit USING INDEX {index}")]);
        }
        assert_eq!(plan(SINCE), ["SEARCH audit USING COVERING INDEX audit_by_time (tenant=? AND at>?)"]);
    }
}
