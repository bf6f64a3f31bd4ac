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
use crate::postgres::PgTransaction;
use crate::sqlite::SqliteConnection;
use crate::value::{Row, Value};

/// The connection a transaction runs on.
pub(crate) enum Link<'c> {
    Sqlite(&'c SqliteConnection),
    Postgres(&'c PgTransaction),
}

/// What a job sees of its transaction.
pub(crate) struct Tx<'c> {
    pub(crate) link: Link<'c>,
    /// Bound to `$1` of every statement: there is no statement without its tenant.
    pub(crate) tenant: &'c str,
    /// The clock of the database, so that leases mean the same to every server.
    pub(crate) now: Timestamp,
    /// Shared by all jobs of the transaction.
    pub(crate) closing: &'c Mutex<Closing>,
    /// Whether this job has changed anything.
    pub(crate) has_written: AtomicBool,
}

impl Tx<'_> {
    pub(crate) fn now(&self) -> Timestamp {
        self.now
    }

    /// All rows. `sql` names the tenant as `$1` and `params` from `$2` on.
    pub(crate) async fn query(&self, sql: &'static str, params: &[Value]) -> Result<Vec<Row>, StoreError> {
        debug_assert!(sql.contains("$1"), "a statement without its tenant: {sql}");
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

    /// How many rows were changed.
    pub(crate) async fn execute(&self, sql: &'static str, params: &[Value]) -> Result<u64, StoreError> {
        debug_assert!(sql.contains("$1"), "a statement without its tenant: {sql}");
        let changed = match &self.link {
            Link::Sqlite(connection) => connection.execute(sql, self.tenant, params),
            Link::Postgres(transaction) => transaction.execute(sql, self.tenant, params).await,
        }?;
        if changed > 0 {
            self.has_written.store(true, Ordering::Relaxed);
        }
        Ok(changed)
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
