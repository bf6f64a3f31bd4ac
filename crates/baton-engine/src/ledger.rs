//! The ledger of a run.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use baton_core::budget::{Amount, BudgetLimit, BudgetUnit};
use baton_core::event::is_within;
use baton_core::ledger::{self, AgentUsage, CallOutcome, LedgerRow, subtree};
use baton_core::usage::Usage;
use tokio::sync::Notify;

/// The ledger rows of a run, shared by all its scopes. Totals are sums over the rows, never separate counters.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    rows: Arc<Mutex<LedgerRows>>,
    /// Notified when a reservation ends.
    freed: Arc<Notify>,
}

#[derive(Debug, Default)]
struct LedgerRows {
    all: Vec<LedgerRow>,
    /// Rows written by code that cannot wait. The next append stores them.
    unsaved: Vec<LedgerRow>,
    /// The calls in progress that count against a budget: their number, their path and the most that they can take.
    reserved: Vec<(u64, String, Amount)>,
    reservations: u64,
}

/// Why a call cannot be reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Blocked {
    /// Calls in progress have reserved what is left.
    Busy,
    Exhausted(BudgetUnit),
}

/// RAII guard of a reserved call.
#[derive(Debug)]
pub(crate) struct LocalReservation {
    ledger: Ledger,
    number: u64,
}

impl Drop for LocalReservation {
    fn drop(&mut self) {
        self.ledger.lock().reserved.retain(|(number, ..)| *number != self.number);
        self.ledger.freed.notify_waiters();
    }
}

impl Ledger {
    /// Starts with the rows of earlier attempts.
    pub fn with_saved(rows: Vec<LedgerRow>) -> Self {
        let rows = LedgerRows { all: rows, ..LedgerRows::default() };
        Self { rows: Arc::new(Mutex::new(rows)), freed: Arc::default() }
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

    /// Whether a call at or below `path` has succeeded.
    pub(crate) fn has_success(&self, path: &str) -> bool {
        let succeeded = |row: &LedgerRow| row.outcome == CallOutcome::Ok && is_within(&row.path, path);
        self.lock().all.iter().any(succeeded)
    }

    /// Reserves a call, if each of the limits has something left after the calls in progress. Each limit is that of everything at or
    /// below its path. A forced call is reserved in any case.
    pub(crate) fn reserve(
        &self,
        path: &str,
        most: Amount,
        limits: &[(Arc<str>, BudgetLimit)],
        forced: bool,
    ) -> Result<LocalReservation, Blocked> {
        let mut rows = self.lock();
        for (above, limit) in limits.iter().filter(|_| !forced) {
            let spent = Amount::from(subtree(rows.all.iter(), above));
            if let Some(unit) = limit.reached(spent) {
                return Err(Blocked::Exhausted(unit));
            }
            let open = rows.reserved.iter().filter(|(_, path, _)| is_within(path, above));
            let used = open.fold(spent, |used, (_, _, most)| used.plus(*most));
            if limit.reached(used).is_some() {
                return Err(Blocked::Busy);
            }
        }
        rows.reservations += 1;
        let number = rows.reservations;
        rows.reserved.push((number, path.to_owned(), most));
        Ok(LocalReservation { ledger: self.clone(), number })
    }

    /// Notified when a reservation ends.
    pub(crate) fn freed(&self) -> &Notify {
        &self.freed
    }

    /// Usage of the whole run by agent.
    pub(crate) fn by_agent(&self) -> Vec<AgentUsage> {
        ledger::by_agent(&self.lock().all)
    }

    fn lock(&self) -> MutexGuard<'_, LedgerRows> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
