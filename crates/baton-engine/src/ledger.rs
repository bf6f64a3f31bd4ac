//! The rows of a run, as they are written.

use std::sync::{Arc, Mutex, PoisonError};

use baton_core::ledger::{LedgerRow, subtree};
use baton_core::usage::Usage;

/// Shared by everything in a run. Totals are sums over rows, never counters beside them.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    rows: Arc<Mutex<Vec<LedgerRow>>>,
}

impl Ledger {
    pub fn write(&self, row: LedgerRow) {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner).push(row);
    }

    pub fn rows(&self) -> Vec<LedgerRow> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What everything at or below `path` has cost so far.
    pub fn spent(&self, path: &str) -> Usage {
        subtree(self.rows.lock().unwrap_or_else(PoisonError::into_inner).iter(), path)
    }
}
