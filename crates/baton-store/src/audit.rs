//! The audit trail of a tenant: 16 hash chains of entries and one chain of seals over them. Writers of different threads mostly
//! use different chains and do not wait for each other.
//!
//! - [`chain`]: the chain of an entry, and the hashes. [`stored`]: entries as rows. [`ends`]: the last position of each chain.
//! - [`seal`]: one signature over all chains, about once a second. [`keys`]: the keys that sign.
//! - [`verify`]: recomputes the hashes. [`checkpoint`]: where the last verification ended. [`truncation`]: removes the oldest entries.
//! - [`list`]: entries of all chains in one order. [`find`]: which rows have entries about a thread or of an actor or action.
//! - [`people`]: names, which are not part of the entries.

mod chain;
mod checkpoint;
mod ends;
mod find;
pub(crate) mod keys;
mod list;
mod people;
pub(crate) mod seal;
mod stored;
pub(crate) mod truncation;
mod verify;

use std::collections::BTreeMap;

use baton_core::store::{
    Audit, AuditEntry, AuditQuery, AuditScope, AuditVerdict, Audited, Page, PageRequest, Pending, micros,
};
use baton_core::{RunId, StoreError, ThreadId};
pub(crate) use chain::chain_of;
use find::Found;
pub(crate) use find::forget_number;
use list::AuditPosition;
pub(crate) use people::forget_name;
pub(crate) use stored::AuditLine;

use crate::insert::Changes;
use crate::job::JobSubject;
use crate::tenant::{Tenant, refused};
use crate::tx::Tx;

impl Audit for Tenant {
    fn record(&self, entry: AuditEntry) -> Pending<'_, ()> {
        self.write(JobSubject::Tenant, entry, |tx, entry| {
            let recorded = tx.audit(entry);
            Box::pin(async { recorded })
        })
    }

    fn audit(&self, query: AuditQuery, page: PageRequest) -> Pending<'_, Page<Audited>> {
        match AuditPosition::parse(&page, query.order) {
            Ok(last) => self.read((query, page, last), |tx, (query, page, last)| {
                Box::pin(list::list(tx, query, page, *last))
            }),
            Err(error) => refused(error),
        }
    }

    fn verify_audit(&self, scope: AuditScope) -> Pending<'_, AuditVerdict> {
        Box::pin(async move {
            let (verdict, reached) =
                self.read(scope, |tx, scope| Box::pin(verify::verify(tx, *scope))).await?;
            if let Some(reached) = reached {
                self.write(JobSubject::Tenant, reached, |tx, reached| Box::pin(reached.store(tx))).await?;
            }
            Ok(verdict)
        })
    }

    fn sign_audit(&self) -> Pending<'_, AuditVerdict> {
        Box::pin(async move {
            let verdict = self.read((), |tx, ()| Box::pin(verify::verify_unsigned(tx))).await?;
            if matches!(verdict, AuditVerdict::Broken { .. }) {
                return Ok(verdict);
            }
            let tenant = self.tenant.as_str().into();
            seal::sign(&self.database.driver, &tenant).await?;
            self.verify_audit(AuditScope::Full).await
        })
    }
}

/// An entry without a thread, run, trace or detail.
pub(crate) fn entry(actor: &str, action: &str, decision: &str) -> AuditEntry {
    AuditEntry {
        actor: actor.to_owned(),
        action: action.to_owned(),
        decision: decision.to_owned(),
        ..AuditEntry::default()
    }
}

/// Adds a thread and optionally one of its runs to an entry.
pub(crate) fn about(entry: AuditEntry, thread: ThreadId, run: Option<RunId>) -> AuditEntry {
    AuditEntry { thread_id: Some(thread), run_id: run, ..entry }
}

/// Appends entries to their chains, in order. Call once, at the end of a transaction: the chains stay locked until it commits.
///
/// A transaction that waited for the lock may carry an older clock than the one it waited for. Times within a chain never
/// decrease.
pub(crate) async fn write(tx: &Tx<'_>, lines: &mut [AuditLine]) -> Result<(), StoreError> {
    find::number(tx, lines).await?;
    people::hide(tx, lines).await?;
    let mut chains: BTreeMap<u8, Vec<&AuditLine>> = BTreeMap::new();
    for line in &*lines {
        // Several chains let writers pass each other. SQLite has one writer, and one chain is one row per transaction.
        let chain = if tx.is_postgres() { chain_of(line.thread) } else { 0 };
        chains.entry(chain).or_default().push(line);
    }
    if chains.is_empty() {
        return Ok(());
    }
    let mut ends = ends::lock(tx, chains.keys().copied()).await?;
    let (mut rows, mut found) = (Vec::new(), Found::default());
    for (chain, locked) in &mut ends {
        let end = &mut locked.end;
        end.at = end.at.max(micros(tx.now()));
        for lines in chains[chain].chunks(stored::MOST) {
            rows.push(stored::add(*chain, end, lines));
            found.add(*chain, end, lines);
        }
    }
    let mut changes = Changes::default();
    changes.insert(&stored::INSERT, rows);
    found.write(&mut changes);
    for (chain, end) in &ends {
        changes.execute(ends::MOVE, end.values(tx, *chain));
    }
    tx.write(changes).await
}
