//! One transaction on one connection.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};

use baton_core::StoreError;
use deadpool_postgres::{Client, Pool};
use futures_util::FutureExt as _;
use futures_util::future::join;
use jiff::Timestamp;
use tokio_postgres::types::ToSql;

use super::fault::{Fault, Kind};
use super::{pool, wire};
use crate::closing::Closing;
use crate::insert::{Bound, Changes};
use crate::meter::Shared;
use crate::tx::{Link, Tx};
use crate::value::{Row, Value};

/// The first statement of every transaction: what follows sees one tenant only, and learns what time it is.
const ENTER: &str = "SELECT set_config('baton.tenant', $1, true), \
     (extract(epoch FROM clock_timestamp()) * 1000000)::bigint";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Read,
    Write,
}

impl Mode {
    fn begin(self) -> &'static str {
        match self {
            // All statements see the same moment.
            Self::Read => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
            Self::Write => "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE",
        }
    }
}

/// Rolled back when it is dropped, unless it was committed.
pub(crate) struct PgTransaction {
    client: Client,
    /// What went wrong first. PostgreSQL refuses every statement after that, and would call a rollback a successful commit.
    cause: OnceLock<Fault>,
    is_over: AtomicBool,
}

impl PgTransaction {
    /// A connection may have broken while nobody used it; then another one is taken, once.
    pub(super) async fn begin(pool: &Pool, mode: Mode, tenant: &str) -> Result<(Self, Timestamp), Fault> {
        match Self::begin_on(pool::client(pool).await?, mode, tenant).await {
            Err(fault) if fault.kind == Kind::Lost => {
                Self::begin_on(pool::client(pool).await?, mode, tenant).await
            }
            begun => begun,
        }
    }

    async fn begin_on(client: Client, mode: Mode, tenant: &str) -> Result<(Self, Timestamp), Fault> {
        let enter = client.prepare_cached(ENTER).await?;
        let transaction = Self { client, cause: OnceLock::new(), is_over: AtomicBool::new(false) };
        let params: [&(dyn ToSql + Sync); 1] = [&tenant];
        // Sent together; the answers come together.
        let open = transaction.client.batch_execute(mode.begin());
        let (opened, entered) = join(open, transaction.client.query_one(&enter, &params)).await;
        opened?;
        let micros: i64 = entered?.try_get(1)?;
        let now = Timestamp::from_microsecond(micros)
            .map_err(|_| StoreError::Failed("the clock of PostgreSQL is out of range".to_owned()))?;
        Ok((transaction, now))
    }

    /// What a job sees of it. Each has its own, to tell which of them have written.
    pub(super) fn tx<'c>(
        &'c self,
        tenant: &'c str,
        now: Timestamp,
        closing: &'c Mutex<Closing>,
        shared: &'c Shared,
    ) -> Tx<'c> {
        let has_written = AtomicBool::new(false);
        Tx { link: Link::Postgres(self), tenant, now, closing, shared, has_written }
    }

    pub(crate) async fn query(
        &self,
        sql: &'static str,
        tenant: &str,
        params: &[Value],
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
        params: &[Value],
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

    fn noted<T>(&self, result: Result<T, Fault>) -> Result<T, StoreError> {
        result.map_err(|fault| {
            if fault.kind != Kind::Aftermath {
                let _ = self.cause.set(fault.clone());
            }
            fault.error
        })
    }

    /// An outcome, or why there cannot be one: after a failed statement nothing counts, whatever a job makes of it.
    pub(super) fn verdict<T>(&self, outcome: Result<T, StoreError>) -> Result<T, Fault> {
        match self.cause.get() {
            Some(cause) => Err(cause.clone()),
            None => outcome.map_err(Fault::from),
        }
    }

    /// Everything or nothing. When the connection breaks before the answer, nobody knows which of the two.
    pub(super) async fn commit(&self) -> Result<(), Fault> {
        self.verdict(Ok(()))?;
        let committed = self.client.batch_execute("COMMIT").await;
        self.is_over.store(true, Ordering::Relaxed);
        committed.map_err(|error| {
            let fault = Fault::from(error);
            match fault.kind {
                Kind::Lost => {
                    StoreError::Unavailable(format!("whether it was written is not known: {}", fault.error))
                        .into()
                }
                _ => fault,
            }
        })
    }
}

impl Drop for PgTransaction {
    fn drop(&mut self) {
        if !self.is_over.load(Ordering::Relaxed) {
            // Polled once, it is sent; whatever comes next on this connection is after it.
            let _ = self.client.batch_execute("ROLLBACK").now_or_never();
        }
    }
}

/// Outside of any tenant.
pub(super) async fn rows(client: &Client, sql: &str, params: &[Value]) -> Result<Vec<Row>, Fault> {
    let statement = client.prepare_cached(sql).await?;
    let params: Vec<_> = params.iter().map(|param| param as &(dyn ToSql + Sync)).collect();
    client.query(&statement, &params).await?.iter().map(wire::row).collect()
}

/// The tenant is `$1` of every statement.
fn bound<'p>(tenant: &'p &str, params: &'p [Value]) -> Vec<&'p (dyn ToSql + Sync)> {
    let params = params.iter().map(|param| param as &(dyn ToSql + Sync));
    std::iter::once(tenant as &(dyn ToSql + Sync)).chain(params).collect()
}
