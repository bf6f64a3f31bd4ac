//! The end of a transaction: what its jobs have left to it.
//!
//! How many runs a tenant has open is in one row, and everyone who writes for the tenant waits for whoever changes it. So it is
//! changed once, right before the commit, for all jobs of the transaction together. The same goes for the ends of audit chains and for
//! the sums over ways between agents: in whatever order jobs add to them, they are locked in one order, so no two transactions wait
//! for each other.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use baton_core::StoreError;
use baton_core::store::AuditEntry;

use crate::audit;
use crate::patterns::{self, Count, Way};
use crate::tx::Tx;
use crate::value::params;

/// What the jobs of one transaction have left to its end.
#[derive(Debug, Default)]
pub(crate) struct Closing {
    pub(crate) audit: Vec<AuditEntry>,
    /// How many runs were opened, less those that have ended.
    runs: i64,
    /// The fewest that somebody wants to be open at most.
    most: Option<u32>,
    ways: BTreeMap<Way, Count>,
}

impl Closing {
    /// Whether there is room for one more where `open` were open before this transaction.
    pub(crate) fn check_room(&self, open: i64, most: Option<u32>) -> Result<(), StoreError> {
        match most {
            Some(most) if open.saturating_add(self.runs) >= i64::from(most) => {
                Err(StoreError::TooManyRuns(most))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn open_run(&mut self, most: Option<u32>) {
        self.runs += 1;
        self.most = [self.most, most].into_iter().flatten().min();
    }

    pub(crate) fn count(&mut self, way: Way, count: Count) {
        *self.ways.entry(way).or_default() += count;
    }

    pub(crate) fn end_runs(&mut self, count: i64) {
        self.runs -= count;
    }
}

const CLOSE: &str = "
    UPDATE tenants SET open_runs = open_runs + $2 WHERE tenant = $1
    RETURNING open_runs";

/// Called once, right before the commit. What another server has opened meanwhile is known only here: then the transaction
/// cannot be kept, and its jobs are done again one by one.
pub(crate) async fn close(tx: &Tx<'_>) -> Result<(), StoreError> {
    let closing = std::mem::take(&mut *tx.closing.lock().unwrap_or_else(PoisonError::into_inner));
    let Closing { audit: entries, runs, most, ways } = closing;
    patterns::add(tx, ways).await?;
    if runs != 0 {
        count_runs(tx, runs, most).await?;
    }
    audit::write(tx, &entries).await
}

async fn count_runs(tx: &Tx<'_>, runs: i64, most: Option<u32>) -> Result<(), StoreError> {
    audit::know_tenant(tx).await?;
    let end = tx.first(CLOSE, params![runs]).await?;
    let open = end.ok_or_else(|| StoreError::Failed("the tenant is gone".to_owned()))?.int(0)?;
    match most {
        Some(most) if open > i64::from(most) => Err(StoreError::TooManyRuns(most)),
        _ => Ok(()),
    }
}
