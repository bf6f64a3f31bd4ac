//! One transaction on one connection.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};

use baton_core::StoreError;
use deadpool_postgres::{Client, Pool};
use futures_util::FutureExt as _;
use futures_util::future::join;
use jiff::Timestamp;
use tokio_postgres::types::ToSql;

use super::fault::{FaultKind, PostgresFault};
use super::{pool, wire};
use crate::closing::Closing;
use crate::insert::{Bound, Changes};
use crate::meter::MeterShared;
use crate::tx::{Tx, TxConnection};
use crate::value::{Row, SqlValue};

/// The first statement of every transaction: sets the tenant for row-level security and returns the database clock.
const ENTER: &str = "SELECT set_config('baton.tenant', $1, true), \
     (extract(epoch FROM clock_timestamp()) * 1000000)::bigint";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TransactionMode {
    Read,
    Write,
}

impl TransactionMode {
    fn begin(self) -> &'static str {
        match self {
            // All statements see one snapshot.
            Self::Read => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
            Self::Write => "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE",
        }
    }
}

/// A transaction that rolls back on drop, unless committed.
pub(crate) struct PgTransaction {
    client: Client,
    /// The first failure. PostgreSQL refuses every later statement, and answers `COMMIT` with a rollback that looks like
    /// success.
    cause: OnceLock<PostgresFault>,
    is_over: AtomicBool,
}

impl PgTransaction {
    /// Begins a transaction. If the pooled connection turns out to be broken, retries once with another.
    pub(super) async fn begin(
        pool: &Pool,
        mode: TransactionMode,
        tenant: &str,
    ) -> Result<(Self, Timestamp), PostgresFault> {
        match Self::begin_on(pool::client(pool).await?, mode, tenant).await {
            Err(fault) if fault.kind == FaultKind::Lost => {
                Self::begin_on(pool::client(pool).await?, mode, tenant).await
            }
            begun => begun,
        }
    }

    async fn begin_on(
        client: Client,
        mode: TransactionMode,
        tenant: &str,
    ) -> Result<(Self, Timestamp), PostgresFault> {
        let enter = client.prepare_cached(ENTER).await?;
        let transaction = Self { client, cause: OnceLock::new(), is_over: AtomicBool::new(false) };
        let params: [&(dyn ToSql + Sync); 1] = [&tenant];
        // Pipelined: both are sent before the first reply arrives.
        let open = transaction.client.batch_execute(mode.begin());
        let (opened, entered) = join(open, transaction.client.query_one(&enter, &params)).await;
        opened?;
        let micros: i64 = entered?.try_get(1)?;
        let now = Timestamp::from_microsecond(micros)
            .map_err(|_| StoreError::Failed("the clock of PostgreSQL is out of range".to_owned()))?;
        Ok((transaction, now))
    }

    /// A job's view of the transaction. Each job has its own, to track which of them have written.
    pub(super) fn tx<'c>(
        &'c self,
        tenant: &'c str,
        now: Timestamp,
        closing: &'c Mutex<Closing>,
        shared: &'c MeterShared,
    ) -> Tx<'c> {
        let has_written = AtomicBool::new(false);
        Tx { link: TxConnection::Postgres(self), tenant, now, closing, shared, has_written }
    }

    pub(crate) async fn query(
        &self,
        sql: &'static str,
        tenant: &str,
        params: &[SqlValue],
    ) -> Result<Vec<Row>, StoreError> {
        let asked = async {
            let statement = self.client.prepare_cached(sql).await?;
            let found = self.client.query(&statement, &bound(&tenant, params)).await?;
            found.iter().map(wire::row).collect()
        };
        self.noted(asked.await)
    }

    pub(crate) async fn execute(
        &self,
        sql: &'static str,
        tenant: &str,
        params: &[SqlValue],
    ) -> Result<u64, StoreError> {
        let asked = async {
            let statement = self.client.prepare_cached(sql).await?;
            Ok(self.client.execute(&statement, &bound(&tenant, params)).await?)
        };
        self.noted(asked.await)
    }

    pub(crate) async fn write(&self, tenant: &str, changes: &Changes) -> Result<(), StoreError> {
        let (sql, values) = changes.together();
        let asked = async {
            let statement = self.client.prepare_cached(&sql).await?;
            let values = values.iter().map(|value| match value {
                Bound::One(value) => value as &(dyn ToSql + Sync),
                Bound::Column(values) => values as &(dyn ToSql + Sync),
            });
            let bound: Vec<_> = std::iter::once(&tenant as &(dyn ToSql + Sync)).chain(values).collect();
            Ok(self.client.execute(&statement, &bound).await.map(drop)?)
        };
        self.noted(asked.await)
    }

    fn noted<T>(&self, result: Result<T, PostgresFault>) -> Result<T, StoreError> {
        result.map_err(|fault| {
            if fault.kind != FaultKind::Aftermath {
                let _ = self.cause.set(fault.clone());
            }
            fault.error
        })
    }

    /// The outcome of a job, or the transaction's first failure: after a failed statement no outcome is valid.
    pub(super) fn verdict<T>(&self, outcome: Result<T, StoreError>) -> Result<T, PostgresFault> {
        match self.cause.get() {
            Some(cause) => Err(cause.clone()),
            None => outcome.map_err(PostgresFault::from),
        }
    }

    /// Commits. Only a reply of the server that refuses the commit is a definite failure. If the connection is lost before the
    /// reply, or the server stops while it commits, the outcome is unknown.
    pub(super) async fn commit(&self) -> Result<(), PostgresFault> {
        self.verdict(Ok(()))?;
        let committed = self.client.batch_execute("COMMIT").await;
        self.is_over.store(true, Ordering::Relaxed);
        committed.map_err(|error| {
            let is_refused = error.code().is_some();
            let fault = PostgresFault::from(error);
            match fault.kind {
                FaultKind::Lost => StoreError::OutcomeUnknown(fault.error.to_string()).into(),
                _ if !is_refused => StoreError::OutcomeUnknown(fault.error.to_string()).into(),
                _ => fault,
            }
        })
    }
}

impl Drop for PgTransaction {
    fn drop(&mut self) {
        if !self.is_over.load(Ordering::Relaxed) {
            // The first poll sends the statement. Later statements on this connection queue behind it.
            let _ = self.client.batch_execute("ROLLBACK").now_or_never();
        }
    }
}

/// Runs a query outside of any tenant.
pub(super) async fn rows(client: &Client, sql: &str, params: &[SqlValue]) -> Result<Vec<Row>, PostgresFault> {
    let statement = client.prepare_cached(sql).await?;
    let params: Vec<_> = params.iter().map(|param| param as &(dyn ToSql + Sync)).collect();
    client.query(&statement, &params).await?.iter().map(wire::row).collect()
}

/// Prepends the tenant as `$1`.
fn bound<'p>(tenant: &'p &str, params: &'p [SqlValue]) -> Vec<&'p (dyn ToSql + Sync)> {
    let params = params.iter().map(|param| param as &(dyn ToSql + Sync));
    std::iter::once(tenant as &(dyn ToSql + Sync)).chain(params).collect()
}
