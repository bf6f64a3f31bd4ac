//! PostgreSQL: a few tasks write, a pool of connections reads.
//!
//! Whatever waits to be written for a tenant goes into one transaction, and everyone is answered when it has committed. Every
//! transaction names its tenant before anything else and runs under a role that row-level security applies to, so a statement
//! that forgot its tenant would find nothing.

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
use baton_core::store::Load;
use deadpool_postgres::{Client, Pool};

use address::Address;
pub(crate) use fault::{Fault, Kind};
use lanes::{LANES, Lane, Lanes, Queued, TENANTS};
use pool::Session;
pub(crate) use transaction::PgTransaction;
use transaction::{Mode, rows};

use crate::job::{About, Job};
use crate::meter::Shared;
use crate::migrate;
use crate::value::{Row, Value};

/// Reads at the same time; more wait for their turn. Writing has its own connections, so that no read is in its way.
const READERS: usize = 12;

#[derive(Debug)]
pub(crate) struct Postgres {
    lanes: Lanes,
    writers: Pool,
    readers: Pool,
    shared: Arc<Shared>,
}

impl Postgres {
    /// Connects, and brings the schema up to date.
    pub(crate) async fn open(url: &str) -> Result<Self, StoreError> {
        let address = Address::parse(url)?;
        let first = pool::build(&address, 1, Session::AsLoggedIn)?;
        migrate::postgres(&mut pool::client(&first).await?).await?;
        first.close();
        let writers = pool::build(&address, LANES * TENANTS, Session::AsApplication)?;
        let readers = pool::build(&address, READERS, Session::AsApplication)?;
        check_isolation(&pool::client(&readers).await?).await?;
        let shared = Arc::<Shared>::default();
        let lanes = Lanes::start(&Lane { pool: writers.clone(), shared: Arc::clone(&shared) });
        Ok(Self { lanes, writers, readers, shared })
    }

    pub(crate) async fn write(
        &self,
        tenant: Arc<str>,
        about: About,
        job: Box<dyn Job>,
    ) -> Result<(), StoreError> {
        let waiting = self.shared.meter.enter();
        self.lanes.queue(Queued { tenant, about, job, waiting }).await
    }

    /// A transaction of its own, so that all statements of a read see the same moment. It changes nothing, so nobody waits for
    /// its end.
    pub(crate) async fn read(&self, tenant: Arc<str>, job: Box<dyn Job>) -> Result<(), StoreError> {
        let (transaction, now) = PgTransaction::begin(&self.readers, Mode::Read, &tenant).await?;
        let closing = Mutex::default();
        let tx = transaction.tx(&tenant, now, &closing, &self.shared);
        self.shared.meter.executed(3);
        let outcome = batch::guarded(&*job, &tx).await;
        job.answer(transaction.verdict(outcome).map_err(StoreError::from));
        Ok(())
    }

    /// A transaction of its own, beside the lanes: nothing that waits in them waits for it.
    pub(crate) async fn write_apart(&self, tenant: &str, job: Box<dyn Job>) -> Result<(), StoreError> {
        let (transaction, now) = PgTransaction::begin(&self.readers, Mode::Write, tenant).await?;
        let closing = Mutex::default();
        let outcome = batch::guarded(&*job, &transaction.tx(tenant, now, &closing, &self.shared)).await;
        let outcome = match transaction.verdict(outcome) {
            Ok(()) => transaction.commit().await,
            Err(fault) => Err(fault),
        };
        job.answer(outcome.map_err(StoreError::from));
        Ok(())
    }

    /// A question that concerns all tenants. Only functions that belong to the owner of the tables can answer it.
    pub(crate) async fn system(&self, sql: &'static str, params: &[Value]) -> Result<Vec<Row>, StoreError> {
        let client = pool::client(&self.readers).await?;
        Ok(rows(&client, sql, params).await?)
    }

    pub(crate) fn load(&self) -> Load {
        self.shared.meter.load()
    }

    /// What was queued before is still written.
    pub(crate) async fn close(&self) -> Result<(), StoreError> {
        self.lanes.close().await;
        self.writers.close();
        self.readers.close();
        Ok(())
    }
}

/// A role with too many rights would see every tenant's rows, and nobody would notice.
async fn check_isolation(client: &Client) -> Result<(), Fault> {
    let is_active = client.query_one("SELECT row_security_active('threads')", &[]).await?;
    if is_active.try_get(0)? {
        return Ok(());
    }
    let text = "row-level security does not apply to the role baton_app: it must not be a superuser, not have BYPASSRLS, \
         and not own Baton's tables";
    Err(StoreError::Failed(text.to_owned()).into())
}
