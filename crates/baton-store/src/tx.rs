//! One transaction of one tenant, on either database.
//!
//! All operations are written once against [`Tx`], in SQL that both databases understand. On SQLite every await is ready
//! immediately; on PostgreSQL independent statements are pipelined.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use baton_core::store::AuditEntry;
use baton_core::{StoreError, ThreadId};
use jiff::Timestamp;

use crate::audit::AuditLine;
use crate::closing::Closing;
use crate::insert::Changes;
use crate::job::is_refusal;
use crate::meter::MeterShared;
use crate::postgres::PgTransaction;
use crate::sqlite::SqliteConnection;
use crate::value::{Row, SqlValue};

pub(crate) enum TxConnection<'c> {
    Sqlite(&'c SqliteConnection),
    Postgres(&'c PgTransaction),
}

/// An update of one row of `thread_work` that returns the row. SQLite materializes `RETURNING` in a temporary table, which
/// costs more than a second read, and its transactions have exclusive access.
pub(crate) struct ChangeOne {
    pub(crate) change: &'static str,
    pub(crate) read: &'static str,
    pub(crate) returning: &'static str,
}

/// Builds a [`ChangeOne`] from the change's SQL and the columns to return.
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

/// A job's view of its transaction.
pub(crate) struct Tx<'c> {
    pub(crate) link: TxConnection<'c>,
    /// Bound to `$1` of every statement.
    pub(crate) tenant: &'c str,
    /// The clock of the database, so that leases are consistent across servers.
    pub(crate) now: Timestamp,
    /// Shared by all jobs of the transaction.
    pub(crate) closing: &'c Mutex<Closing>,
    /// Shared by all transactions of the store.
    pub(crate) shared: &'c MeterShared,
    /// Whether this job has changed anything.
    pub(crate) has_written: AtomicBool,
}

impl Tx<'_> {
    /// Whether this is PostgreSQL, which has concurrent writers and arrays.
    pub(crate) fn is_postgres(&self) -> bool {
        matches!(self.link, TxConnection::Postgres(_))
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.now
    }

    /// Returns all rows. `sql` refers to the tenant as `$1` and to `params` from `$2` on.
    pub(crate) async fn query(&self, sql: &'static str, params: &[SqlValue]) -> Result<Vec<Row>, StoreError> {
        self.query_about(None, sql, params).await
    }

    /// Like [`Self::query`], for a statement that depends on rows of one thread only.
    pub(crate) async fn query_of(
        &self,
        thread: ThreadId,
        sql: &'static str,
        params: &[SqlValue],
    ) -> Result<Vec<Row>, StoreError> {
        self.query_about(Some(thread), sql, params).await
    }

    async fn query_about(
        &self,
        thread: Option<ThreadId>,
        sql: &'static str,
        params: &[SqlValue],
    ) -> Result<Vec<Row>, StoreError> {
        debug_assert!(sql.contains("$1"), "a statement without its tenant: {sql}");
        self.shared.meter.executed(1);
        let rows = match &self.link {
            TxConnection::Sqlite(connection) => {
                self.write_pending_for(connection, sql, thread)?;
                connection.query(sql, self.tenant, params)
            }
            TxConnection::Postgres(transaction) => transaction.query(sql, self.tenant, params).await,
        }?;
        if !sql.trim_start().starts_with("SELECT") && !rows.is_empty() {
            self.has_written.store(true, Ordering::Relaxed);
        }
        Ok(rows)
    }

    /// Returns the first row, if any.
    pub(crate) async fn first(
        &self,
        sql: &'static str,
        params: &[SqlValue],
    ) -> Result<Option<Row>, StoreError> {
        Ok(self.query(sql, params).await?.into_iter().next())
    }

    /// Changes one row and returns its new state, or `None` if no row matched. `$2` of both statements is its key.
    pub(crate) async fn change(
        &self,
        sql: &ChangeOne,
        params: &[SqlValue],
    ) -> Result<Option<Row>, StoreError> {
        match self.link {
            TxConnection::Postgres(_) => self.first(sql.returning, params).await,
            TxConnection::Sqlite(_) if self.execute(sql.change, params).await? == 0 => Ok(None),
            TxConnection::Sqlite(_) => self.first(sql.read, &params[..1]).await,
        }
    }

    /// The number that SQLite gave to the row that was inserted last; 0 on PostgreSQL.
    pub(crate) fn last_number(&self) -> u64 {
        match &self.link {
            TxConnection::Sqlite(connection) => connection.last_number(),
            TxConnection::Postgres(_) => 0,
        }
    }

    /// Returns the number of rows changed.
    pub(crate) async fn execute(&self, sql: &'static str, params: &[SqlValue]) -> Result<u64, StoreError> {
        debug_assert!(sql.contains("$1"), "a statement without its tenant: {sql}");
        self.shared.meter.executed(1);
        let changed = match &self.link {
            TxConnection::Sqlite(connection) => {
                self.write_pending_for(connection, sql, None)?;
                connection.execute(sql, self.tenant, params)
            }
            TxConnection::Postgres(transaction) => transaction.execute(sql, self.tenant, params).await,
        }?;
        if changed > 0 {
            self.has_written.store(true, Ordering::Relaxed);
        }
        Ok(changed)
    }

    /// Performs all changes, or returns an error. On SQLite they wait for those of other jobs ([`pending`](crate::pending)).
    pub(crate) async fn write(&self, changes: Changes) -> Result<(), StoreError> {
        if changes.is_empty() {
            return Ok(());
        }
        match &self.link {
            TxConnection::Sqlite(connection) => {
                self.to_close().pending.add(changes, |sql| connection.tables(sql));
                Ok(())
            }
            TxConnection::Postgres(transaction) => {
                self.has_written.store(true, Ordering::Relaxed);
                self.shared.meter.executed(1);
                transaction.write(self.tenant, &changes).await
            }
        }
    }

    /// Performs the changes that wait.
    pub(crate) fn write_pending(&self) -> Result<(), StoreError> {
        let TxConnection::Sqlite(connection) = &self.link else { return Ok(()) };
        let pending =
            std::mem::take(&mut self.closing.lock().unwrap_or_else(PoisonError::into_inner).pending);
        pending.write(connection, self.tenant, &self.shared.meter)
    }

    /// Performs the changes that wait if a statement may depend on them. They may be those of other jobs, so a failure is never a
    /// refusal of this one.
    fn write_pending_for(
        &self,
        connection: &SqliteConnection,
        sql: &'static str,
        thread: Option<ThreadId>,
    ) -> Result<(), StoreError> {
        let closing = self.closing.lock().unwrap_or_else(PoisonError::into_inner);
        let concerns = !closing.pending.is_empty() && closing.pending.concern(connection.tables(sql), thread);
        drop(closing);
        if !concerns {
            return Ok(());
        }
        self.write_pending().map_err(|error| match error {
            error if is_refusal(&error) => StoreError::Failed(error.to_string()),
            error => error,
        })
    }

    /// Executes a statement for each row, in order; pipelined on PostgreSQL.
    pub(crate) async fn execute_each(
        &self,
        sql: &'static str,
        rows: impl IntoIterator<Item = Vec<SqlValue>>,
    ) -> Result<(), StoreError> {
        let rows: Vec<Vec<SqlValue>> = rows.into_iter().collect();
        let changes = rows.iter().map(|params| self.execute(sql, params));
        futures_util::future::try_join_all(changes).await.map(|_| ())
    }

    /// Queues an audit entry, written right before the commit.
    pub(crate) fn audit(&self, entry: &AuditEntry) -> Result<(), StoreError> {
        let line = AuditLine::new(entry, None)?;
        self.to_close().audit.push(line);
        Ok(())
    }

    /// The number of audit entries queued so far.
    pub(crate) fn audited(&self) -> usize {
        self.closing.lock().unwrap_or_else(PoisonError::into_inner).audit.len()
    }

    /// Queues an audit entry before those queued since there were `at` of them.
    pub(crate) fn audit_at(&self, at: usize, entry: &AuditEntry) -> Result<(), StoreError> {
        let line = AuditLine::new(entry, None)?;
        let mut closing = self.to_close();
        let at = at.min(closing.audit.len());
        closing.audit.insert(at, line);
        Ok(())
    }

    /// Queues audit entries of a run whose thread has this id and number.
    pub(crate) fn audit_run(
        &self,
        thread: ThreadId,
        number: u64,
        entries: &[AuditEntry],
    ) -> Result<(), StoreError> {
        for entry in entries {
            let line = AuditLine::new(entry, entry.thread_id.filter(|id| *id == thread).map(|_| number))?;
            self.to_close().audit.push(line);
        }
        Ok(())
    }

    /// The writes deferred to the commit.
    pub(crate) fn to_close(&self) -> MutexGuard<'_, Closing> {
        self.has_written.store(true, Ordering::Relaxed);
        self.closing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
