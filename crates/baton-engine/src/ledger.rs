//! The rows of a run, as they are written.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use baton_core::ledger::{self, AgentUsage, LedgerRow, subtree};
use baton_core::usage::Usage;

/// Shared by everything in a run. Totals are sums over rows, never counters beside them.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    rows: Arc<Mutex<Rows>>,
}

#[derive(Debug, Default)]
struct Rows {
    all: Vec<LedgerRow>,
    /// Those written where nothing can be waited for; the next append takes them along.
    unsaved: Vec<LedgerRow>,
}

impl Ledger {
    /// With what earlier attempts of the run spent.
    pub fn with_saved(rows: Vec<LedgerRow>) -> Self {
        Self { rows: Arc::new(Mutex::new(Rows { all: rows, unsaved: Vec::new() })) }
    }

    /// The next append keeps it.
    pub fn write(&self, row: LedgerRow) {
        let mut rows = self.lock();
        rows.unsaved.push(row.clone());
        rows.all.push(row);
    }

    /// Whoever calls this keeps them, with what they belong to.
    pub(crate) fn count(&self, rows: &[LedgerRow]) {
        self.lock().all.extend_from_slice(rows);
    }

    pub(crate) fn take_unsaved(&self) -> Vec<LedgerRow> {
        std::mem::take(&mut self.lock().unsaved)
    }

    /// Whether the call of this row has a row already. A call is known by its path and the microsecond in which it began.
    pub(crate) fn holds(&self, row: &LedgerRow) -> bool {
        let call = |row: &LedgerRow| row.started_at.as_microsecond();
        self.lock().all.iter().any(|known| known.path == row.path && call(known) == call(row))
    }

    pub fn rows(&self) -> Vec<LedgerRow> {
        self.lock().all.clone()
    }

    /// What everything at or below `path` has cost so far.
    pub fn spent(&self, path: &str) -> Usage {
        subtree(self.lock().all.iter(), path)
    }

    /// The same for the whole run, agent by agent.
    pub(crate) fn by_agent(&self) -> Vec<AgentUsage> {
        ledger::by_agent(&self.lock().all)
    }

    fn lock(&self) -> MutexGuard<'_, Rows> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
