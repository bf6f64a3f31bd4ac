//! The end of a transaction: what its jobs have left to it.
//!
//! The ends of audit chains and the sums over ways between agents are rows that many jobs of a tenant change. They are changed once,
//! right before the commit, for all jobs of the transaction together, and in one order, so that no two transactions wait for each other.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use baton_core::StoreError;
use baton_core::store::AuditEntry;

use crate::audit;
use crate::patterns::{self, Count, Way};
use crate::runs::Room;
use crate::tx::Tx;
use crate::value::params;

/// What the jobs of one transaction have left to its end, and what they share until then.
#[derive(Debug, Default)]
pub(crate) struct Closing {
    pub(crate) audit: Vec<AuditEntry>,
    ways: BTreeMap<Way, Count>,
    pub(crate) room: Room,
    /// Whether the tenant is among the tenants once this has committed.
    pub(crate) is_known: bool,
}

impl Closing {
    pub(crate) fn count(&mut self, way: Way, count: Count) {
        *self.ways.entry(way).or_default() += count;
    }
}

/// Called once, right before the commit. Returns whether the tenant is certainly among the tenants after it.
pub(crate) async fn close(tx: &Tx<'_>) -> Result<bool, StoreError> {
    let closing = std::mem::take(&mut *tx.closing.lock().unwrap_or_else(PoisonError::into_inner));
    let Closing { audit: entries, ways, is_known, .. } = closing;
    patterns::add(tx, ways).await?;
    if entries.is_empty() {
        return Ok(is_known);
    }
    know_tenant(tx).await?;
    audit::write(tx, &entries).await?;
    Ok(true)
}

/// Sees to it that the tenant is among the tenants. A tenant that this process knows is not written again.
pub(crate) async fn know_tenant(tx: &Tx<'_>) -> Result<(), StoreError> {
    if tx.shared.is_known(tx.tenant) {
        return Ok(());
    }
    let sql = "INSERT INTO tenants (tenant, created_at) VALUES ($1, $2) ON CONFLICT (tenant) DO NOTHING";
    tx.execute(sql, params![tx.now()]).await?;
    tx.closing.lock().unwrap_or_else(PoisonError::into_inner).is_known = true;
    Ok(())
}
