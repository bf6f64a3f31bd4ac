//! The ledger of a run.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use baton_core::ledger::{self, AgentUsage, LedgerRow, subtree};
use baton_core::usage::Usage;

/// The ledger rows of a run, shared by all its scopes. Totals are sums over the rows, never separate counters.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    rows: Arc<Mutex<LedgerRows>>,
}

#[derive(Debug, Default)]
struct LedgerRows {
    all: Vec<LedgerRow>,
    /// Rows written by code that cannot wait. The next append stores them.
    unsaved: Vec<LedgerRow>,
}

impl Ledger {
    /// Starts with the rows of earlier attempts.
    pub fn with_saved(rows: Vec<LedgerRow>) -> Self {
        Self { rows: Arc::new(Mutex::new(LedgerRows { all: rows, unsaved: Vec::new() })) }
    }

    /// Adds a row, which the next append stores.
    pub fn write(&self, row: LedgerRow) {
        let mut rows = self.lock();
        rows.unsaved.push(row.clone());
        rows.all.push(row);
    }

    /// Adds rows that the caller stores itself, with the step they belong to.
    pub(crate) fn count(&self, rows: &[LedgerRow]) {
        self.lock().all.extend_from_slice(rows);
    }

    pub(crate) fn take_unsaved(&self) -> Vec<LedgerRow> {
        std::mem::take(&mut self.lock().unsaved)
    }

    /// Whether the ledger has a row for this row's call. A call is identified by its path and the microsecond of its start.
    pub(crate) fn holds(&self, row: &LedgerRow) -> bool {
        let call = |row: &LedgerRow| row.started_at.as_microsecond();
        self.lock().all.iter().any(|known| known.path == row.path && call(known) == call(row))
    }

    pub fn rows(&self) -> Vec<LedgerRow> {
        self.lock().all.clone()
    }

    /// Usage of everything at or below `path`. The empty path is the whole run.
    pub fn spent(&self, path: &str) -> Usage {
        subtree(self.lock().all.iter(), path)
    }

    /// Usage of the whole run by agent.
    pub(crate) fn by_agent(&self) -> Vec<AgentUsage> {
        ledger::by_agent(&self.lock().all)
    }

    fn lock(&self) -> MutexGuard<'_, LedgerRows> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
