//! PostgreSQL: a few tasks write, a pool of connections reads.
//!
//! All jobs queued for a tenant go into one transaction and are answered after it commits. Every transaction sets its tenant
//! first and runs under a role subject to row-level security, so a statement without a tenant filter finds no foreign rows.

mod address;
mod batch;
mod fault;
mod lanes;
mod pool;
mod tls;
mod transaction;
mod wire;

use std::sync::{Arc, Mutex};

use baton_core::StoreError;
use baton_core::store::StoreLoad;
use deadpool_postgres::{Client, Pool};

use address::PostgresAddress;
pub(crate) use fault::{FaultKind, PostgresFault};
use lanes::{LANES, Lane, LaneJob, Lanes, TENANTS};
use pool::ConnectionRole;
pub(crate) use transaction::PgTransaction;
use transaction::{TransactionMode, rows};

use crate::audit::keys::AuditKeys;
use crate::job::{Job, JobSubject};
use crate::meter::MeterShared;
use crate::migrate;
use crate::value::{Row, SqlValue};

/// Connections for concurrent reads; further reads wait. Writes use a separate pool, so that reads do not delay them.
const READERS: usize = 12;

#[derive(Debug)]
pub(crate) struct Postgres {
    lanes: Lanes,
    writers: Pool,
    readers: Pool,
    shared: Arc<MeterShared>,
}

impl Postgres {
    /// Connects, and migrates the schema.
    pub(crate) async fn open(url: &str, keys: AuditKeys) -> Result<Self, StoreError> {
        let address = PostgresAddress::parse(url)?;
        let first = pool::build(&address, 1, ConnectionRole::AsLoggedIn)?;
        migrate::postgres(&mut pool::client(&first).await?).await?;
        first.close();
        let writers = pool::build(&address, LANES * TENANTS, ConnectionRole::AsApplication)?;
        let readers = pool::build(&address, READERS, ConnectionRole::AsApplication)?;
        check_isolation(&pool::client(&readers).await?).await?;
        let shared = Arc::new(MeterShared::new(keys));
        let lanes = Lanes::start(&Lane { pool: writers.clone(), shared: Arc::clone(&shared) });
        Ok(Self { lanes, writers, readers, shared })
    }

    pub(crate) async fn write(
        &self,
        tenant: Arc<str>,
        about: JobSubject,
        job: Box<dyn Job>,
    ) -> Result<(), StoreError> {
        let waiting = self.shared.meter.enter();
        self.lanes.queue(LaneJob { tenant, about, job, waiting }).await
    }

    /// Reads in a transaction of its own, so that all statements see one snapshot. It is read-only, so its end is not awaited.
    pub(crate) async fn read(&self, tenant: Arc<str>, job: Box<dyn Job>) -> Result<(), StoreError> {
        let (transaction, now) = PgTransaction::begin(&self.readers, TransactionMode::Read, &tenant).await?;
        let closing = Mutex::default();
        let tx = transaction.tx(&tenant, now, &closing, &self.shared);
        self.shared.meter.executed(3);
        let outcome = batch::guarded(&*job, &tx).await;
        job.answer(transaction.verdict(outcome).map_err(StoreError::from));
        Ok(())
    }

    /// Writes in a transaction of its own, beside the lanes, without delaying the jobs queued there.
    pub(crate) async fn write_apart(&self, tenant: &str, job: Box<dyn Job>) -> Result<(), StoreError> {
        let (transaction, now) = PgTransaction::begin(&self.readers, TransactionMode::Write, tenant).await?;
        let closing = Mutex::default();
        let outcome = batch::guarded(&*job, &transaction.tx(tenant, now, &closing, &self.shared)).await;
        let outcome = match transaction.verdict(outcome) {
            Ok(()) => transaction.commit().await,
            Err(fault) => Err(fault),
        };
        job.answer(outcome.map_err(StoreError::from));
        Ok(())
    }

    /// Runs a query across tenants. Only functions owned by the tables' owner can answer it.
    pub(crate) async fn system(
        &self,
        sql: &'static str,
        params: &[SqlValue],
    ) -> Result<Vec<Row>, StoreError> {
        let client = pool::client(&self.readers).await?;
        Ok(rows(&client, sql, params).await?)
    }

    pub(crate) fn load(&self) -> StoreLoad {
        self.shared.meter.load()
    }

    /// Writes the jobs queued so far, then closes the pools.
    pub(crate) async fn close(&self) -> Result<(), StoreError> {
        self.lanes.close().await;
        self.writers.close();
        self.readers.close();
        Ok(())
    }
}

/// Fails if the role has rights that bypass row-level security: it would silently see the rows of every tenant.
async fn check_isolation(client: &Client) -> Result<(), PostgresFault> {
    let is_active = client.query_one("SELECT row_security_active('threads')", &[]).await?;
    if is_active.try_get(0)? {
        return Ok(());
    }
    let text = "row-level security does not apply to the role baton_app: it must not be a superuser, not have BYPASSRLS, \
         and not own Baton's tables";
    Err(StoreError::Failed(text.to_owned()).into())
}
