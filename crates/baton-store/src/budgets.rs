//! Budgets that runs share. [`settle`] charges finished calls; [`spent`](mod@spent) reads what the ledger says.
//!
//! On PostgreSQL, a transaction locks all accounts of its tenant at once, and after all threads: reservations are its last jobs
//! ([`JobSubject::Budgets`]), and charges are written at its end ([`crate::closing`]).

pub(crate) mod settle;
mod spent;

use std::collections::BTreeMap;
use std::sync::{MutexGuard, PoisonError};

use baton_core::budget::{
    Amount, BudgetAccount, BudgetKey, BudgetLimit, BudgetScope, BudgetUnit, BudgetWarning,
};
use baton_core::store::{BudgetAccounts, BudgetState, Pending, Reservation, ReservationOutcome, Reserved};
use baton_core::{RunId, StoreError, ThreadId};
use jiff::{SignedDuration, Timestamp};

use crate::closing::Closing;
use crate::insert::{Changes, ColumnKind, Insert};
use crate::job::JobSubject;
use crate::tenant::Tenant;
use crate::threads;
use crate::tx::Tx;
use crate::value::{Row, SqlValue, params, row_values};

impl BudgetAccounts for Tenant {
    fn reserve(&self, reservation: Reservation) -> Pending<'_, Reserved> {
        self.write(JobSubject::Budgets, reservation, |tx, reservation| Box::pin(reserve(tx, reservation)))
    }

    fn is_free(&self, reservation: Reservation) -> Pending<'_, bool> {
        self.read(reservation, |tx, reservation| Box::pin(is_free(tx, reservation)))
    }

    fn release_reservations(&self, run: RunId) -> Pending<'_, ()> {
        // Before the accounts are locked: an append locks the reservations of its run first, too.
        self.write(JobSubject::Tenant, run, |tx, run| Box::pin(settle::release(tx, *run)))
    }

    fn budget_states(&self, keys: Vec<BudgetKey>) -> Pending<'_, Vec<BudgetState>> {
        self.read(keys, |tx, keys| Box::pin(states(tx, keys)))
    }
}

/// The columns of a key, from `$2` to `$5`.
fn key_values(key: &BudgetKey) -> Vec<SqlValue> {
    row_values![key.scope, key.subject.as_str(), key.period, key.starts_at]
}

/// Limit of one sum, so that adding a call never overflows a column.
const MOST: i64 = 1 << 62;

/// PostgreSQL only. Waits for the transaction that holds the lock; the next statement sees its writes.
const LOCK: &str = "SELECT 1 FROM pg_advisory_xact_lock(hashtextextended('baton budgets of ' || $1, 0))";

/// Locks the accounts of the tenant until the transaction ends. After this, the transaction must not lock a thread.
async fn lock(tx: &Tx<'_>, is_locked: bool) -> Result<(), StoreError> {
    if !is_locked && tx.is_postgres() {
        tx.first(LOCK, &[]).await?;
    }
    Ok(())
}

const OPEN: &str = "
    INSERT INTO budget_accounts (tenant, scope, subject, period, starts_at, cost_nanos, tokens, warned)
    VALUES ($1, $2, $3, $4, $5, 0, 0, 0)
    ON CONFLICT (tenant, scope, subject, period, starts_at) DO NOTHING";

const ACCOUNT: &str = "SELECT cost_nanos, tokens, warned FROM budget_accounts
    WHERE tenant = $1 AND scope = $2 AND subject = $3 AND period = $4 AND starts_at = $5";

const RECOUNTED: &str = "UPDATE budget_accounts SET cost_nanos = $6, tokens = $7
    WHERE tenant = $1 AND scope = $2 AND subject = $3 AND period = $4 AND starts_at = $5";

const WARNED: &str = "UPDATE budget_accounts SET warned = 1
    WHERE tenant = $1 AND scope = $2 AND subject = $3 AND period = $4 AND starts_at = $5";

/// In two parts, as the sums of usage reports: one sum could overflow.
macro_rules! reserved {
    ($which:literal) => {
        concat!(
            "SELECT
                CAST(coalesce(sum(cost_nanos / 1000000), 0) AS BIGINT),
                CAST(coalesce(sum(cost_nanos % 1000000), 0) AS BIGINT),
                CAST(coalesce(sum(tokens / 1000000), 0) AS BIGINT),
                CAST(coalesce(sum(tokens % 1000000), 0) AS BIGINT)
            FROM budget_reservations
            WHERE tenant = $1 AND scope = $2 AND subject = $3 AND period = $4 AND starts_at = $5
                AND expires_at > $6",
            $which
        )
    };
}

const RESERVED: &str = reserved!("");

/// Without the call itself, which is reserved already if the request is repeated.
const RESERVED_BY_OTHERS: &str = reserved!(" AND NOT (run_id = $7 AND called_at = $8 AND path = $9)");

static INSERT: Insert = Insert::new(
    "budget_reservations",
    &[
        ("scope", ColumnKind::Text),
        ("subject", ColumnKind::Text),
        ("period", ColumnKind::Text),
        ("starts_at", ColumnKind::Int),
        ("run_id", ColumnKind::Uuid),
        ("path", ColumnKind::Text),
        ("called_at", ColumnKind::Int),
        ("cost_nanos", ColumnKind::Int),
        ("tokens", ColumnKind::Int),
        ("expires_at", ColumnKind::Int),
    ],
    " ON CONFLICT (tenant, scope, subject, period, starts_at, run_id, called_at, path) DO UPDATE
        SET cost_nanos = excluded.cost_nanos, tokens = excluded.tokens, expires_at = excluded.expires_at",
);

/// One account of a reservation.
struct Balance<'a> {
    account: &'a BudgetAccount,
    spent: Amount,
    reserved: Amount,
    is_warned: bool,
}

impl Balance<'_> {
    fn room(&self) -> Amount {
        self.account.limit.room(self.spent.plus(self.reserved))
    }

    fn limit(&self) -> &BudgetLimit {
        &self.account.limit
    }
}

async fn reserve(tx: &Tx<'_>, reservation: &Reservation) -> Result<Reserved, StoreError> {
    let was_locked = std::mem::replace(&mut known(tx).accounts.is_locked, true);
    lock(tx, was_locked).await?;
    // A deleted thread has no reservations, so that none is left of it.
    threads::must_exist(tx, reservation.thread_id).await?;
    let mut balances = Vec::with_capacity(reservation.accounts.len());
    for account in &reservation.accounts {
        balances.push(balance(tx, account, reservation).await?);
    }
    let verdict = decide(&balances, reservation);
    if let ReservationOutcome::Granted(amount) = verdict {
        let expires_at = tx.now() + SignedDuration::try_from(reservation.ttl).unwrap_or(SignedDuration::MAX);
        let rows = reservation.accounts.iter().map(|account| {
            let call = params![reservation.run_id, reservation.path.as_str(), reservation.started_at];
            let most = params![amount.nanos.min(MOST), amount.tokens.min(MOST.cast_unsigned()), expires_at];
            [key_values(&account.key).as_slice(), call, most].concat()
        });
        let mut changes = Changes::of(reservation.thread_id);
        changes.insert(&INSERT, rows.collect());
        tx.write(changes).await?;
    } else {
        // It may have been granted before, and others have spent more than they had reserved since.
        settle::release_call(tx, reservation.run_id, reservation.started_at, &reservation.path).await?;
    }
    let mut warnings = Vec::new();
    for balance in balances.iter().filter(|balance| !balance.is_warned) {
        if let Some(unit) = balance.limit().nearly_reached(balance.spent) {
            tx.execute(WARNED, &key_values(&balance.account.key)).await?;
            let percent = balance.limit().percent(balance.spent);
            warnings.push(BudgetWarning::shared(&balance.account.key, unit, percent));
        }
    }
    Ok(Reserved { verdict, warnings })
}

/// See [`BudgetAccounts::is_free`]. Without a recount, which the reservation before has made.
async fn is_free(tx: &Tx<'_>, reservation: &Reservation) -> Result<bool, StoreError> {
    let mut balances = Vec::with_capacity(reservation.accounts.len());
    for account in &reservation.accounts {
        let key = key_values(&account.key);
        let spent = tx.first(ACCOUNT, &key).await?.map_or(Ok(Amount::default()), |row| amount(&row))?;
        let reserved = reserved_by_others(tx, &key, reservation).await?;
        balances.push(Balance { account, spent, reserved, is_warned: true });
    }
    Ok(decide(&balances, reservation) != ReservationOutcome::Busy)
}

async fn reserved_by_others(
    tx: &Tx<'_>,
    key: &[SqlValue],
    reservation: &Reservation,
) -> Result<Amount, StoreError> {
    let call = params![tx.now(), reservation.run_id, reservation.started_at, reservation.path.as_str()];
    sum(tx.first(RESERVED_BY_OTHERS, &[key, call].concat()).await?)
}

/// Reads an account, which is created if it is new.
async fn balance<'a>(
    tx: &Tx<'_>,
    account: &'a BudgetAccount,
    reservation: &Reservation,
) -> Result<Balance<'a>, StoreError> {
    let key = key_values(&account.key);
    tx.execute(OPEN, &key).await?;
    let row = tx.first(ACCOUNT, &key).await?.ok_or(StoreError::NotFound("budget"))?;
    // Charges of this transaction that are not written yet: their rows are in the ledger, their reservations are gone.
    let pending = known(tx).accounts.charges.get(&account.key).copied().unwrap_or_default();
    let mut spent = amount(&row)?.plus(pending);
    if reservation.recount.contains(&account.key) {
        let ledger = spent::in_ledger(tx, &account.key).await?;
        let counted =
            Amount { nanos: spent.nanos.max(ledger.nanos), tokens: spent.tokens.max(ledger.tokens) };
        if counted != spent {
            let (nanos, tokens) = (counted.nanos - pending.nanos, counted.tokens - pending.tokens);
            tx.execute(RECOUNTED, &[key.as_slice(), params![nanos.min(MOST), tokens]].concat()).await?;
            spent = counted;
        }
    }
    let reserved = reserved_by_others(tx, &key, reservation).await?;
    Ok(Balance { account, spent, reserved, is_warned: row.int(2)? != 0 })
}

fn amount(row: &Row) -> Result<Amount, StoreError> {
    Ok(Amount { nanos: row.int(0)?, tokens: row.count(1)? })
}

fn sum(row: Option<Row>) -> Result<Amount, StoreError> {
    row.map_or(Ok(Amount::default()), |row| spent::sum(&row, 0))
}

/// See [`BudgetAccounts::reserve`].
fn decide(balances: &[Balance<'_>], reservation: &Reservation) -> ReservationOutcome {
    let Reservation { wanted, least, is_closing, .. } = reservation;
    let used_up = |balance: &Balance<'_>| balance.limit().reached(balance.spent);
    let exhausted = balances.iter().find_map(|balance| Some((balance, used_up(balance)?)));
    if let Some((balance, unit)) = exhausted {
        return ReservationOutcome::Exhausted { key: balance.account.key.clone(), unit };
    }
    let room = balances.iter().fold(Amount::MAX, |room, balance| room.min(balance.room()));
    if least.fits(room) {
        return ReservationOutcome::Granted(wanted.min(room));
    }
    if *is_closing && room.nanos > 0 && room.tokens > 0 {
        return ReservationOutcome::Granted(*least);
    }
    // Without the calls in progress it might fit.
    let short = balances.iter().filter(|balance| !least.fits(balance.room()));
    for balance in short {
        let free = balance.limit().room(balance.spent);
        if !is_closing && !least.fits(free) {
            let unit = if least.nanos > free.nanos { BudgetUnit::Cost } else { BudgetUnit::Tokens };
            return ReservationOutcome::Exhausted { key: balance.account.key.clone(), unit };
        }
    }
    ReservationOutcome::Busy
}

async fn states(tx: &Tx<'_>, keys: &[BudgetKey]) -> Result<Vec<BudgetState>, StoreError> {
    let mut states = Vec::with_capacity(keys.len());
    for key in keys {
        let values = key_values(key);
        let counted = match tx.first(ACCOUNT, &values).await? {
            Some(row) => amount(&row)?,
            None => Amount::default(),
        };
        let ledger = spent::in_ledger(tx, key).await?;
        let spent =
            Amount { nanos: counted.nanos.max(ledger.nanos), tokens: counted.tokens.max(ledger.tokens) };
        let reserved = tx.first(RESERVED, &[values.as_slice(), params![tx.now()]].concat()).await?;
        states.push(BudgetState { key: key.clone(), spent, reserved: sum(reserved)? });
    }
    Ok(states)
}

/// What a transaction changes at its end.
#[derive(Debug, Default)]
pub(crate) struct AccountChanges {
    charges: BTreeMap<BudgetKey, Amount>,
    /// Threads whose accounts are deleted.
    deleted: Vec<ThreadId>,
    /// Whether this transaction has locked the accounts of its tenant.
    is_locked: bool,
}

fn known<'t>(tx: &'t Tx<'_>) -> MutexGuard<'t, Closing> {
    tx.closing.lock().unwrap_or_else(PoisonError::into_inner)
}

const ADD: &str = "
    INSERT INTO budget_accounts (tenant, scope, subject, period, starts_at, cost_nanos, tokens, warned)
    VALUES ($1, $2, $3, $4, $5, $6, $7, 0)
    ON CONFLICT (tenant, scope, subject, period, starts_at) DO UPDATE
    SET cost_nanos = CASE WHEN budget_accounts.cost_nanos > $8 THEN budget_accounts.cost_nanos
            ELSE budget_accounts.cost_nanos + excluded.cost_nanos END,
        tokens = CASE WHEN budget_accounts.tokens > $8 THEN budget_accounts.tokens
            ELSE budget_accounts.tokens + excluded.tokens END";

const DELETE: &str = "DELETE FROM budget_accounts WHERE tenant = $1 AND scope = 'thread' AND subject = $2";

/// Writes the changes of a transaction.
pub(crate) async fn write(tx: &Tx<'_>, changes: AccountChanges) -> Result<(), StoreError> {
    if changes.charges.is_empty() && changes.deleted.is_empty() {
        return Ok(());
    }
    lock(tx, changes.is_locked).await?;
    let rows = changes.charges.into_iter().map(|(key, amount)| {
        let most = MOST - 1;
        let amount = params![amount.nanos.min(most), amount.tokens.min(most.cast_unsigned()), most];
        [key_values(&key).as_slice(), amount].concat()
    });
    tx.execute_each(ADD, rows).await?;
    tx.execute_each(DELETE, changes.deleted.iter().map(|thread| row_values![thread.to_string()])).await
}

/// How long a reservation is kept after it has expired: the process that continues its run charges the call by it.
const KEPT: SignedDuration = SignedDuration::from_hours(24);
/// How long the amount of a day is kept.
const KEPT_DAYS: SignedDuration = SignedDuration::from_hours(24 * 62);

/// Deletes reservations that nothing settles any more, and amounts of days that are long over.
pub(crate) async fn sweep(tx: &Tx<'_>) -> Result<(), StoreError> {
    let before = |kept| tx.now().saturating_sub(kept).unwrap_or(Timestamp::MIN);
    let reservations = "DELETE FROM budget_reservations WHERE tenant = $1 AND expires_at <= $2";
    tx.execute(reservations, params![before(KEPT)]).await?;
    for scope in [BudgetScope::User, BudgetScope::Tenant] {
        tx.execute(DELETE_DAYS, params![scope, before(KEPT_DAYS)]).await?;
    }
    Ok(())
}

/// With the scope, which begins the key: the accounts of threads have no days, and there are most of them.
const DELETE_DAYS: &str = "DELETE FROM budget_accounts
    WHERE tenant = $1 AND scope = $2 AND period = 'day' AND starts_at <= $3";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::history::tests::plan;

    #[test]
    fn old_days_are_deleted_without_reading_the_accounts_of_threads() {
        assert_eq!(plan(DELETE_DAYS), ["SEARCH budget_accounts USING PRIMARY KEY (tenant=? AND scope=?)"]);
    }
}
