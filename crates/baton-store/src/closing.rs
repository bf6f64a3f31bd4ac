//! The end of a transaction: work that its jobs defer to it.
//!
//! Many jobs of a tenant update the ends of audit chains, the sums of hop patterns and the amounts of budgets. These rows are updated once, right
//! before the commit, for all jobs of the transaction together and in a fixed order, so that transactions do not deadlock.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use baton_core::StoreError;

use crate::audit::{self, AuditLine};
use crate::budgets::{self, AccountChanges};
use crate::patterns::{self, Count, PatternKey};
use crate::pending::PendingChanges;
use crate::runs::OpenRuns;
use crate::tx::Tx;
use crate::value::params;

/// Writes deferred by the jobs of one transaction, and state they share until then.
#[derive(Debug, Default)]
pub(crate) struct Closing {
    pub(crate) audit: Vec<AuditLine>,
    ways: BTreeMap<PatternKey, Count>,
    pub(crate) accounts: AccountChanges,
    pub(crate) room: OpenRuns,
    /// SQLite only.
    pub(crate) pending: PendingChanges,
    /// Whether this transaction inserts the tenant into `tenants`.
    pub(crate) is_known: bool,
}

impl Closing {
    pub(crate) fn count(&mut self, way: PatternKey, count: Count) {
        *self.ways.entry(way).or_default() += count;
    }
}

/// Performs the deferred writes. Call once, right before the commit. Returns whether the tenant is certainly in `tenants` after
/// the commit.
pub(crate) async fn close(tx: &Tx<'_>) -> Result<bool, StoreError> {
    tx.write_pending()?;
    let closing = std::mem::take(&mut *tx.closing.lock().unwrap_or_else(PoisonError::into_inner));
    let Closing { audit: mut entries, ways, accounts, is_known, .. } = closing;
    budgets::write(tx, accounts).await?;
    patterns::add(tx, ways).await?;
    if entries.is_empty() {
        return Ok(is_known);
    }
    know_tenant(tx).await?;
    audit::write(tx, &mut entries).await?;
    tx.write_pending()?;
    Ok(true)
}

/// Inserts the tenant into `tenants`, unless this process knows that it is there.
pub(crate) async fn know_tenant(tx: &Tx<'_>) -> Result<(), StoreError> {
    if tx.shared.is_known(tx.tenant) {
        return Ok(());
    }
    let sql = "INSERT INTO tenants (tenant, created_at) VALUES ($1, $2) ON CONFLICT (tenant) DO NOTHING";
    tx.execute(sql, params![tx.now()]).await?;
    tx.closing.lock().unwrap_or_else(PoisonError::into_inner).is_known = true;
    Ok(())
}
