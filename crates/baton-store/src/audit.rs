//! The audit trail: a chain of entries per tenant. [`chain`] says what binds them, [`verify`] whether they still hold.

mod chain;
mod verify;

use baton_core::store::{Audit, AuditEntry, AuditQuery, Audited, Order, Page, PageRequest, Pending, Verdict};
use baton_core::{RunId, StoreError, ThreadId};
use jiff::Timestamp;
use serde_json::Value as Json;

use crate::job::About;
use crate::page::{self, Ordered};
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
        match page::number(&page, query.order) {
            Ok(last) => self
                .read((query, page, last), |tx, (query, page, last)| Box::pin(list(tx, query, page, *last))),
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
macro_rules! all {
    ($direction:literal) => {
        concat!(
            "SELECT number, at, entry, hash
            FROM audit
            WHERE tenant = $1 AND number > $2 AND number < $3
            ORDER BY number",
            $direction,
            "
            LIMIT $4"
        )
    };
}

/// Entries with `$5` in a column. Both bounds name the column, so that SQLite goes along its index: by `number > $2 AND number < $3`
/// it would go along the primary key, and read the entries of all others too.
macro_rules! with {
    ($column:literal, $which:literal) => {
        Ordered { asc: with!($column, "", $which), desc: with!($column, " DESC", $which) }
    };
    ($column:literal, $direction:literal, $which:literal) => {
        concat!(
            "SELECT number, at, entry, hash
            FROM audit
            WHERE tenant = $1 AND (",
            $column,
            ", number) > ($5, $2) AND (",
            $column,
            ", number) < ($5, $3)",
            $which,
            "
            ORDER BY ",
            $column,
            $direction,
            ", number",
            $direction,
            "
            LIMIT $4"
        )
    };
}

const ALL: Ordered = Ordered { asc: all!(""), desc: all!(" DESC") };

const OF_THREAD: Ordered = with!(
    "thread_id",
    " AND (CAST($6 AS TEXT) IS NULL OR actor = $6) AND (CAST($7 AS TEXT) IS NULL OR action = $7)"
);

const OF_ACTOR: Ordered = with!("actor", " AND (CAST($6 AS TEXT) IS NULL OR action = $6)");

const OF_ACTION: Ordered = with!("action", "");

async fn list(
    tx: &Tx<'_>,
    query: &AuditQuery,
    page: &PageRequest,
    last: Option<u64>,
) -> Result<Page<Audited>, StoreError> {
    let (after, before) = range(tx, query, last).await?;
    let (order, limit) = (query.order, page::with_next(page));
    let (actor, action) = (query.actor.as_deref(), query.action.as_deref());
    let rows = match (query.thread_id, actor, action) {
        (Some(thread), ..) => {
            tx.query(OF_THREAD.sql(order), params![after, before, limit, thread, actor, action]).await?
        }
        (None, Some(actor), _) => {
            tx.query(OF_ACTOR.sql(order), params![after, before, limit, actor, action]).await?
        }
        (None, None, Some(action)) => {
            tx.query(OF_ACTION.sql(order), params![after, before, limit, action]).await?
        }
        (None, None, None) => tx.query(ALL.sql(order), params![after, before, limit]).await?,
    };
    let entries = rows.iter().map(read).collect::<Result<Vec<Audited>, _>>()?;
    Ok(page::cut(entries, page.size(), |last| page::ordered(order, last.number.to_string())))
}

/// The numbers between which a page lies, both excluded. `last` is that of the last entry of the page before.
async fn range(tx: &Tx<'_>, query: &AuditQuery, last: Option<u64>) -> Result<(u64, u64), StoreError> {
    let after = match query.since {
        Some(since) => first_at(tx, since).await?.saturating_sub(1),
        None => 0,
    };
    let before = match query.until {
        Some(until) => first_at(tx, until).await?,
        None => u64::MAX,
    };
    Ok(match (last, query.order) {
        (Some(last), Order::Asc) => (after.max(last), before),
        (Some(last), Order::Desc) => (after, before.min(last)),
        (None, _) => (after, before),
    })
}

const FIRST_AT: &str = "SELECT number FROM audit WHERE tenant = $1 AND at >= $2 ORDER BY at, number LIMIT 1";

/// The number of the first entry at a moment or later, or more than any number if there is none. Times do not go back, see
/// [`write`], so every entry from there on is as late.
async fn first_at(tx: &Tx<'_>, moment: Timestamp) -> Result<u64, StoreError> {
    tx.first(FIRST_AT, params![moment]).await?.map_or(Ok(u64::MAX), |row| row.count(0))
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
        for (list, index) in [
            (ALL, "sqlite_autoindex_audit_1 (tenant=? AND number>? AND number<?)"),
            (
                OF_THREAD,
                "audit_of_thread (tenant=? AND (thread_id,number)>(?,?) AND (thread_id,number)<(?,?))",
            ),
            (OF_ACTOR, "audit_of_actor (tenant=? AND (actor,number)>(?,?) AND (actor,number)<(?,?))"),
            (OF_ACTION, "audit_of_action (tenant=? AND (action,number)>(?,?) AND (action,number)<(?,?))"),
        ] {
            for order in [Order::Asc, Order::Desc] {
                assert_eq!(plan(list.sql(order)), [format!("SEARCH audit USING INDEX {index}")], "{order}");
            }
        }
        assert_eq!(plan(FIRST_AT), ["SEARCH audit USING COVERING INDEX audit_by_time (tenant=? AND at>?)"]);
    }
}
