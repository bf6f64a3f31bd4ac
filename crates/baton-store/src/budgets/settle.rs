//! Charges finished calls to the accounts in which they are reserved.

use baton_core::budget::{Amount, BudgetKey, BudgetScope};
use baton_core::store::micros;
use baton_core::{LedgerRow, RunId, StoreError, ThreadId};
use jiff::Timestamp;

use crate::tx::Tx;
use crate::value::{Row, params};

const OF_RUN: &str = "SELECT scope, subject, period, starts_at, path, called_at FROM budget_reservations
    WHERE tenant = $1 AND run_id = $2";

const RELEASE_CALL: &str = "DELETE FROM budget_reservations
    WHERE tenant = $1 AND run_id = $2 AND called_at = $3 AND path = $4";

const RELEASE: &str = "DELETE FROM budget_reservations WHERE tenant = $1 AND run_id = $2";

/// Charges the calls of `rows` and removes their reservations, and all others of the run if it ends.
pub(crate) async fn settle(
    tx: &Tx<'_>,
    run: RunId,
    rows: &[LedgerRow],
    ends: bool,
) -> Result<(), StoreError> {
    if !rows.is_empty() {
        for reserved in tx.query(OF_RUN, params![run]).await? {
            let (path, called_at) = (reserved.text(4)?, reserved.int(5)?);
            let is_call = |row: &&LedgerRow| row.path == path && micros(row.started_at) == called_at;
            if let Some(row) = rows.iter().find(is_call) {
                charge(tx, key(&reserved)?, row.usage().into());
                if !ends {
                    tx.execute(RELEASE_CALL, params![run, called_at, path]).await?;
                }
            }
        }
    }
    if ends { release(tx, run).await } else { Ok(()) }
}

fn charge(tx: &Tx<'_>, key: BudgetKey, amount: Amount) {
    let mut closing = tx.to_close();
    let sum = closing.accounts.charges.entry(key).or_default();
    *sum = sum.plus(amount);
}

fn key(row: &Row) -> Result<BudgetKey, StoreError> {
    Ok(BudgetKey {
        scope: row.choice(0)?,
        subject: row.text(1)?.to_owned(),
        period: row.choice(2)?,
        starts_at: row.time(3)?,
    })
}

/// Removes the reservation of a call that is not made.
pub(super) async fn release_call(
    tx: &Tx<'_>,
    run: RunId,
    started_at: Timestamp,
    path: &str,
) -> Result<(), StoreError> {
    tx.execute(RELEASE_CALL, params![run, started_at, path]).await.map(drop)
}

pub(crate) async fn release(tx: &Tx<'_>, run: RunId) -> Result<(), StoreError> {
    tx.execute(RELEASE, params![run]).await.map(drop)
}

const OF_THREAD: &str =
    "SELECT scope, subject, period, starts_at, cost_nanos, tokens FROM budget_reservations
    WHERE tenant = $1 AND run_id IN (SELECT run_id FROM runs WHERE tenant = $1 AND thread_number = $2)";

const DELETE_RESERVATIONS: &str = "DELETE FROM budget_reservations
    WHERE tenant = $1 AND run_id IN (SELECT run_id FROM runs WHERE tenant = $1 AND thread_number = $2)";

/// Deletes the budget of a thread. Its calls in progress get no ledger rows any more, so user and tenant are charged what these have
/// reserved.
pub(crate) async fn delete_thread(tx: &Tx<'_>, thread: ThreadId, number: u64) -> Result<(), StoreError> {
    for row in tx.query(OF_THREAD, params![number]).await? {
        let key = key(&row)?;
        if key.scope != BudgetScope::Thread {
            charge(tx, key, Amount { nanos: row.int(4)?, tokens: row.count(5)? });
        }
    }
    tx.execute(DELETE_RESERVATIONS, params![number]).await?;
    tx.to_close().accounts.deleted.push(thread);
    Ok(())
}
