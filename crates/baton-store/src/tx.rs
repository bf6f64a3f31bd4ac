//! One transaction, in one tenant, on either database.
//!
//! Everything that is known about threads, runs and the rest is written once, in SQL that both databases understand, against
//! [`Tx`]. On SQLite every await is ready at once; on PostgreSQL statements that do not depend on each other travel together.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use baton_core::StoreError;
use baton_core::store::AuditEntry;
use jiff::Timestamp;

use crate::closing::Closing;
use crate::insert::{Changes, Part};
use crate::meter::Shared;
use crate::postgres::PgTransaction;
use crate::sqlite::SqliteConnection;
use crate::value::{Row, Value};

/// The connection a transaction runs on.
pub(crate) enum Link<'c> {
    Sqlite(&'c SqliteConnection),
    Postgres(&'c PgTransaction),
}

/// A change of one row of `thread_work` that gives the row back. SQLite collects what `RETURNING` gives back in a table of its own, which costs more than
/// reading the row again; its transactions have the database to themselves.
pub(crate) struct ChangeOne {
    pub(crate) change: &'static str,
    pub(crate) read: &'static str,
    pub(crate) returning: &'static str,
}

/// A [`ChangeOne`] from the text of the change and the columns of the row.
macro_rules! change_one {
    ($columns:literal, $($change:expr),+ $(,)?) => {
        $crate::tx::ChangeOne {
            change: concat!($($change),+),
            read: concat!("SELECT ", $columns, " FROM thread_work WHERE tenant = $1 AND thread_id = $2"),
            returning: concat!($($change,)+ " RETURNING ", $columns),
        }
    };
}
pub(crate) use change_one;

/// What a job sees of its transaction.
pub(crate) struct Tx<'c> {
    pub(crate) link: Link<'c>,
    /// Bound to `$1` of every statement: there is no statement without its tenant.
    pub(crate) tenant: &'c str,
    /// The clock of the database, so that leases mean the same to every server.
    pub(crate) now: Timestamp,
    /// Shared by all jobs of the transaction.
    pub(crate) closing: &'c Mutex<Closing>,
    /// Shared by all transactions of the store.
    pub(crate) shared: &'c Shared,
    /// Whether this job has changed anything.
    pub(crate) has_written: AtomicBool,
}

impl Tx<'_> {
    /// Whether this is PostgreSQL: other transactions write at the same time, and there are arrays.
    pub(crate) fn is_postgres(&self) -> bool {
        matches!(self.link, Link::Postgres(_))
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.now
    }

    /// All rows. `sql` names the tenant as `$1` and `params` from `$2` on.
    pub(crate) async fn query(&self, sql: &'static str, params: &[Value]) -> Result<Vec<Row>, StoreError> {
        debug_assert!(sql.contains("$1"), "a statement without its tenant: {sql}");
        self.shared.meter.executed(1);
        let rows = match &self.link {
            Link::Sqlite(connection) => connection.query(sql, self.tenant, params),
            Link::Postgres(transaction) => transaction.query(sql, self.tenant, params).await,
        }?;
        if !sql.trim_start().starts_with("SELECT") && !rows.is_empty() {
            self.has_written.store(true, Ordering::Relaxed);
        }
        Ok(rows)
    }

    /// The first row, if there is one.
    pub(crate) async fn first(&self, sql: &'static str, params: &[Value]) -> Result<Option<Row>, StoreError> {
        Ok(self.query(sql, params).await?.into_iter().next())
    }

    /// Changes one row and returns it as it is then; `None` if nothing was changed. `$2` of both statements is its key.
    pub(crate) async fn change(&self, sql: &ChangeOne, params: &[Value]) -> Result<Option<Row>, StoreError> {
        match self.link {
            Link::Postgres(_) => self.first(sql.returning, params).await,
            Link::Sqlite(_) if self.execute(sql.change, params).await? == 0 => Ok(None),
            Link::Sqlite(_) => self.first(sql.read, &params[..1]).await,
        }
    }

    /// How many rows were changed.
    pub(crate) async fn execute(&self, sql: &'static str, params: &[Value]) -> Result<u64, StoreError> {
        debug_assert!(sql.contains("$1"), "a statement without its tenant: {sql}");
        self.shared.meter.executed(1);
        let changed = match &self.link {
            Link::Sqlite(connection) => connection.execute(sql, self.tenant, params),
            Link::Postgres(transaction) => transaction.execute(sql, self.tenant, params).await,
        }?;
        if changed > 0 {
            self.has_written.store(true, Ordering::Relaxed);
        }
        Ok(changed)
    }

    /// All of it, or an error.
    pub(crate) async fn write(&self, changes: Changes) -> Result<(), StoreError> {
        if changes.is_empty() {
            return Ok(());
        }
        self.has_written.store(true, Ordering::Relaxed);
        match &self.link {
            Link::Sqlite(connection) => changes.parts.iter().try_for_each(|part| match part {
                Part::Rows(into, rows) => {
                    self.shared.meter.executed(rows.len() as u64);
                    rows.iter().try_for_each(|row| connection.execute(into.one(), self.tenant, row).map(drop))
                }
                Part::Statement(sql, params) => {
                    self.shared.meter.executed(1);
                    connection.execute(sql, self.tenant, params).map(drop)
                }
            }),
            Link::Postgres(transaction) => {
                self.shared.meter.executed(1);
                transaction.write(self.tenant, &changes).await
            }
        }
    }

    /// The same statement for many rows, in order; on PostgreSQL without waiting in between.
    pub(crate) async fn execute_each(
        &self,
        sql: &'static str,
        rows: impl IntoIterator<Item = Vec<Value>>,
    ) -> Result<(), StoreError> {
        let rows: Vec<Vec<Value>> = rows.into_iter().collect();
        let changes = rows.iter().map(|params| self.execute(sql, params));
        futures_util::future::try_join_all(changes).await.map(|_| ())
    }

    /// Adds to the audit trail when the transaction commits.
    pub(crate) fn audit(&self, entry: AuditEntry) {
        self.to_close().audit.push(entry);
    }

    /// What is to be written when the transaction commits.
    pub(crate) fn to_close(&self) -> MutexGuard<'_, Closing> {
        self.has_written.store(true, Ordering::Relaxed);
        self.closing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
