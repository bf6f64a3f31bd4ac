//! The store and its tenants: every call becomes a job for the database.

use std::sync::Arc;
use std::time::Duration;

use baton_core::store::{
    AgentsVersion, ApiKey, AuditEntry, LeaseRenewal, Owner, Pending, PushKey, StoreLoad,
};
use baton_core::{Store, StoreError, TenantId, TenantStore, ThreadId};
use uuid::Uuid;

use crate::audit::seal;
use crate::job::{JobFn, JobSubject, job, writing_job};
use crate::open::Database;
use crate::postgres::Postgres;
use crate::sqlite::Sqlite;

/// The database in use.
#[derive(Debug)]
pub(crate) enum Driver {
    Sqlite(Sqlite),
    Postgres(Postgres),
}

/// The data of one tenant on either database. The operations are in the modules of the nouns.
#[derive(Debug)]
#[expect(clippy::struct_field_names, reason = "the id of the tenant is called that everywhere")]
pub(crate) struct Tenant {
    pub(crate) database: Database,
    pub(crate) tenant: TenantId,
    /// Recorded by each write, in its transaction.
    pub(crate) audit: Option<Arc<AuditEntry>>,
}

impl Tenant {
    /// Queues a write. The future resolves once the write is committed and durable. If it is dropped after the job is queued,
    /// the job still runs.
    pub(crate) fn write<I, T>(&self, about: JobSubject, input: I, run: JobFn<I, T>) -> Pending<'static, T>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
    {
        let (driver, tenant) = (Arc::clone(&self.database.driver), Arc::from(self.tenant.as_str()));
        let (job, answer) = writing_job(input, run, &self.database.unsealed, &tenant, self.audit.clone());
        Box::pin(async move {
            match &*driver {
                Driver::Sqlite(sqlite) => sqlite.write(tenant, job).await?,
                Driver::Postgres(postgres) => postgres.write(tenant, about, job).await?,
            }
            // The job was queued: it may have been committed before its reply was dropped.
            answer
                .await
                .map_err(|_| StoreError::OutcomeUnknown("the store stopped before it replied".to_owned()))?
        })
    }

    /// Reads committed data, without waiting for writes.
    pub(crate) fn read<I, T>(&self, input: I, run: JobFn<I, T>) -> Pending<'static, T>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
    {
        let (job, answer) = job(input, run);
        let (driver, tenant) = (Arc::clone(&self.database.driver), Arc::from(self.tenant.as_str()));
        Box::pin(async move {
            match &*driver {
                Driver::Sqlite(sqlite) => sqlite.read(tenant, job).await?,
                Driver::Postgres(postgres) => postgres.read(tenant, job).await?,
            }
            answer.await.map_err(|_| closed())?
        })
    }
}

/// An immediate error for an invalid request.
pub(crate) fn refused<T: 'static>(error: StoreError) -> Pending<'static, T> {
    Box::pin(async { Err(error) })
}

pub(crate) fn closed() -> StoreError {
    StoreError::Unavailable("it was closed".to_owned())
}

impl Store for Database {
    fn tenant(&self, tenant: &TenantId) -> Arc<dyn TenantStore> {
        Arc::new(Tenant { database: self.clone(), tenant: tenant.clone(), audit: None })
    }

    fn tenants(&self) -> Pending<'_, Vec<TenantId>> {
        Box::pin(self.driver.tenants())
    }

    fn agent_versions(&self) -> Pending<'_, Vec<AgentsVersion>> {
        Box::pin(self.driver.agent_versions())
    }

    fn beat(&self, owner: &Owner, lease: Duration) -> Pending<'_, LeaseRenewal> {
        Box::pin(self.driver.beat(owner.clone(), lease))
    }

    fn due(&self, limit: u32) -> Pending<'_, Vec<(TenantId, ThreadId)>> {
        Box::pin(self.driver.due(limit))
    }

    fn due_notifications(&self, limit: u32) -> Pending<'_, Vec<(TenantId, Uuid)>> {
        Box::pin(self.driver.due_notifications(limit))
    }

    fn due_push(&self, limit: u32) -> Pending<'_, Vec<(TenantId, PushKey)>> {
        Box::pin(self.driver.due_push(limit))
    }

    fn overdue_approvals(&self, limit: u32) -> Pending<'_, Vec<(TenantId, Uuid)>> {
        Box::pin(self.driver.overdue_approvals(limit))
    }

    fn owners(&self) -> Pending<'_, Vec<Owner>> {
        Box::pin(self.driver.owners())
    }

    fn release(&self, owner: &Owner) -> Pending<'_, u64> {
        Box::pin(self.driver.release(owner.clone()))
    }

    fn key(&self, hash: &str) -> Pending<'_, Option<(TenantId, ApiKey)>> {
        Box::pin(self.driver.key(hash.to_owned()))
    }

    fn seal_audit(&self) -> Pending<'_, u64> {
        Box::pin(seal::seal_all(self))
    }

    fn take_duty(&self, duty: &'static str, owner: &Owner, lease: Duration) -> Pending<'_, bool> {
        Box::pin(self.driver.take_duty(duty, owner.clone(), lease))
    }

    fn purge_files(&self) -> Pending<'_, ()> {
        Box::pin(self.driver.purge_files())
    }

    fn ping(&self) -> Pending<'_, ()> {
        Box::pin(self.driver.ping())
    }

    fn load(&self) -> StoreLoad {
        match &*self.driver {
            Driver::Sqlite(sqlite) => sqlite.load(),
            Driver::Postgres(postgres) => postgres.load(),
        }
    }

    fn close(&self) -> Pending<'_, ()> {
        Box::pin(async {
            seal::before_close(self).await;
            match &*self.driver {
                Driver::Sqlite(sqlite) => sqlite.close().await,
                Driver::Postgres(postgres) => postgres.close().await,
            }
        })
    }
}

#[cfg(test)]
mod tests;
