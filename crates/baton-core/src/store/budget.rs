//! Budgets that runs share: what was spent of them, and what calls in progress have reserved.
//!
//! A call is reserved before it is made, in a write of its own. The append that stores the call's ledger row removes the reservation
//! and adds the cost ([`super::Append::settles_budgets`]), so that both are exact after a crash. A reservation without a ledger row
//! is removed when its run continues or ends, and no longer counts once it has expired.

use std::time::Duration;

use jiff::Timestamp;

use crate::budget::{Amount, BudgetAccount, BudgetKey, BudgetReport, BudgetUnit, BudgetWarning};
use crate::id::{RunId, ThreadId};
use crate::store::{Pending, StoreError};

/// A call to reserve. Path and start identify its ledger row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reservation {
    pub thread_id: ThreadId,
    pub run_id: RunId,
    pub path: String,
    pub started_at: Timestamp,
    /// Sorted by key.
    pub accounts: Vec<BudgetAccount>,
    /// The most that the call can take.
    pub wanted: Amount,
    /// The least for which the call is worth making.
    pub least: Amount,
    /// Whether this is the last call of a session, which may exceed what is left of a budget.
    pub is_closing: bool,
    /// How long the reservation counts.
    pub ttl: Duration,
    /// Accounts whose amounts are compared with the ledger first. Needed once per process and account, because budgets may have
    /// been off for a while.
    pub recount: Vec<BudgetKey>,
}

/// Result of [`BudgetAccounts::reserve`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reserved {
    pub verdict: ReservationOutcome,
    /// Budgets that became nearly used up. Each is reported once.
    pub warnings: Vec<BudgetWarning>,
}

/// Whether a call may be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReservationOutcome {
    /// At most this much: [`Reservation::wanted`], or what is left.
    Granted(Amount),
    /// Calls in progress have reserved what is left. Try again when they have ended.
    Busy,
    Exhausted {
        key: BudgetKey,
        unit: BudgetUnit,
    },
}

/// What was spent of a shared budget, and what is reserved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetState {
    pub key: BudgetKey,
    pub spent: Amount,
    pub reserved: Amount,
}

/// Access to shared budgets.
pub trait BudgetAccounts: Send + Sync {
    /// Reserves a call in all its accounts, or in none.
    ///
    /// A call that fits what is left is granted; one for which less is left gets that, down to `least`. A closing call is granted as
    /// long as anything is left, and then at least `least`. So spending exceeds a limit by at most one call.
    ///
    /// Can be repeated: the call does not count twice, and only the last result holds.
    fn reserve(&self, reservation: Reservation) -> Pending<'_, Reserved>;

    /// Whether [`BudgetAccounts::reserve`] would not return [`ReservationOutcome::Busy`] now. Writes nothing, so a call can ask again and
    /// again until the calls before it have ended.
    fn is_free(&self, reservation: Reservation) -> Pending<'_, bool>;

    /// Removes the reservations of a run whose process is gone.
    fn release_reservations(&self, run: RunId) -> Pending<'_, ()>;

    /// What was spent and reserved, in the order of `keys`.
    fn budget_states(&self, keys: Vec<BudgetKey>) -> Pending<'_, Vec<BudgetState>>;
}

/// Reads what was spent of `accounts`.
pub async fn budget_reports(
    store: &(impl BudgetAccounts + ?Sized),
    accounts: Vec<BudgetAccount>,
) -> Result<Vec<BudgetReport>, StoreError> {
    if accounts.is_empty() {
        return Ok(Vec::new());
    }
    let keys = accounts.iter().map(|account| account.key.clone()).collect();
    let states = store.budget_states(keys).await?;
    let reports = accounts.into_iter().zip(states);
    Ok(reports.map(|(account, state)| BudgetReport::new(account, state.spent, state.reserved)).collect())
}
