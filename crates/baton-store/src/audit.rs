//! The audit trail of a tenant: 16 chains of entries, so that writers of different threads do not wait for each other, and a chain
//! of seals over them.
//!
//! - [`chain`]: which chain an entry belongs to, and the hashes. [`stored`]: entries as rows. [`ends`]: where chains end.
//! - [`seal`]: binds the chains together, once a second. [`verify`]: whether all is as it was written.
//! - [`list`]: entries of all chains in one order.

mod chain;
mod ends;
mod list;
pub(crate) mod seal;
mod stored;
mod verify;

use std::collections::BTreeMap;

use baton_core::store::{
    Audit, AuditEntry, AuditQuery, Audited, Page, PageRequest, Pending, Verdict, micros,
};
use baton_core::{RunId, StoreError, ThreadId};
pub(crate) use chain::chain_of;
use list::Position;
use serde_json::Value as Json;

use crate::insert::Changes;
use crate::job::About;
use crate::tenant::{Tenant, refused};
use crate::tx::Tx;

impl Audit for Tenant {
    fn record(&self, entry: AuditEntry) -> Pending<'_, ()> {
        self.write(About::Tenant, entry, |tx, entry| {
            tx.audit(entry.clone());
            Box::pin(async { Ok(()) })
        })
    }

    fn audit(&self, query: AuditQuery, page: PageRequest) -> Pending<'_, Page<Audited>> {
        match Position::parse(&page, query.order) {
            Ok(last) => self.read((query, page, last), |tx, (query, page, last)| {
                Box::pin(list::list(tx, query, page, *last))
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

/// Adds entries to their chains, in order. Called once, at the end of a transaction: chains stay locked until it commits.
///
/// A transaction that waited here may have begun before the one that it waited for. Times in a chain do not go back for that.
pub(crate) async fn write(tx: &Tx<'_>, entries: &[AuditEntry]) -> Result<(), StoreError> {
    let mut chains: BTreeMap<u8, Vec<&AuditEntry>> = BTreeMap::new();
    for entry in entries {
        chains.entry(chain_of(entry.thread_id)).or_default().push(entry);
    }
    if chains.is_empty() {
        return Ok(());
    }
    let mut ends = ends::lock(tx, chains.keys().copied()).await?;
    let mut rows = Vec::with_capacity(entries.len());
    for (chain, end) in &mut ends {
        end.at = end.at.max(micros(tx.now()));
        for entry in &chains[chain] {
            rows.push(stored::add(*chain, end, entry)?);
        }
    }
    let mut changes = Changes::default();
    changes.insert(&stored::INSERT, rows);
    for (chain, end) in &ends {
        changes.execute(ends::MOVE, &end.values(*chain));
    }
    tx.write(changes).await
}
