//! Takes over runs whose process is gone, and removes expired data.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use baton_core::store::{Retention, Swept};
use baton_core::{Store, StoreError, TenantId, ThreadId};
use futures_util::future::join_all;
use futures_util::{StreamExt as _, stream};
use uuid::Uuid;

use crate::engine::{Engine, ProcessIdentity};
use crate::registry::WorkerLifetime;

/// Threads that are taken over in one batch.
const BATCH_SIZE: u32 = 64;
/// Approvals that expire at the same time. The store writes them together.
const MAX_EXPIRING: usize = 16;

/// Releases the runs of processes that are certainly gone. Returns how many there were.
pub async fn release_dead_owners(store: &dyn Store, identity: &ProcessIdentity) -> Result<u64, StoreError> {
    let mut released = 0;
    for owner in store.owners().await? {
        if owner != identity.owner && (identity.is_gone)(&owner) {
            released += store.release(&owner).await?;
        }
    }
    Ok(released)
}

/// Removes the expired data of every tenant. History stays.
pub async fn sweep(store: &dyn Store, retention: Retention) -> Result<Swept, StoreError> {
    let mut all = Swept::default();
    for tenant in store.tenants().await? {
        // An error of one tenant does not stop the others.
        match store.tenant(&tenant).sweep(retention).await {
            Ok(swept) => all += swept,
            Err(error) => tracing::warn!(%tenant, %error, "cannot sweep"),
        }
    }
    Ok(all)
}

impl Engine {
    /// See [`release_dead_owners`].
    pub async fn release_dead_owners(&self) -> Result<u64, StoreError> {
        release_dead_owners(&*self.parts.store, &self.parts.identity).await
    }

    /// Executes every run of any tenant that no process works on, and waits for their ends. Returns the number of threads.
    pub async fn recover(self: &Arc<Self>) -> Result<usize, StoreError> {
        self.release_dead_owners().await?;
        self.expire_approvals().await?;
        // A thread that cannot be worked on stays due. It is tried once.
        let mut tried = HashSet::new();
        loop {
            let mut due =
                self.parts.store.due(BATCH_SIZE + u32::try_from(tried.len()).unwrap_or(u32::MAX)).await?;
            due.retain(|key| tried.insert(key.clone()));
            if due.is_empty() {
                return Ok(tried.len());
            }
            join_all(due.into_iter().filter_map(|key| self.wake(key, WorkerLifetime::UntilDone, None))).await;
        }
    }

    /// Ensures that a worker serves the thread, even if no caller waits for its runs.
    pub fn wake_thread(self: &Arc<Self>, tenant: &TenantId, thread: ThreadId) {
        drop(self.wake((tenant.clone(), thread), WorkerLifetime::UntilDone, None));
    }

    /// Takes over due runs and seals the audit trail every `every`; settles hops every 10 minutes; ends expired handoffs and sweeps
    /// every hour. Never returns: the caller owns the task.
    pub async fn run_maintenance(self: Arc<Self>, every: Duration) {
        // A sweep may take minutes, and does not delay the rest.
        tokio::join!(self.take_over_regularly(every), self.sweep_regularly(), self.settle_regularly());
    }

    async fn take_over_regularly(self: &Arc<Self>, every: Duration) {
        loop {
            if let Err(error) = self.wake_due_threads().await {
                tracing::warn!(%error, "cannot query threads with runs to take over");
            }
            if let Err(error) = self.parts.store.seal_audit().await {
                tracing::warn!(%error, "cannot seal the audit trail");
            }
            tokio::time::sleep(every).await;
        }
    }

    pub(crate) async fn end_expired_everywhere(self: &Arc<Self>) {
        let tenants = self.parts.store.tenants().await.unwrap_or_default();
        for tenant in tenants {
            if let Err(error) = self.end_expired(&self.parts.store.tenant(&tenant)).await {
                tracing::warn!(%tenant, %error, "cannot end handoffs whose time is over");
            }
        }
    }

    /// Denies the calls whose approval has expired, which makes their runs claimable.
    async fn expire_approvals(&self) -> Result<(), StoreError> {
        let overdue = self.parts.store.overdue_approvals(BATCH_SIZE).await?;
        let expire = async |(tenant, approval): (TenantId, Uuid)| {
            if let Err(error) = self.parts.store.tenant(&tenant).expire(approval).await {
                tracing::warn!(%tenant, %approval, %error, "cannot expire an approval");
            }
        };
        stream::iter(overdue).for_each_concurrent(MAX_EXPIRING, expire).await;
        Ok(())
    }

    /// Like [`Engine::recover`] for one batch, without waiting for the ends.
    async fn wake_due_threads(self: &Arc<Self>) -> Result<(), StoreError> {
        self.release_dead_owners().await?;
        self.expire_approvals().await?;
        for key in self.parts.store.due(BATCH_SIZE).await? {
            drop(self.wake(key, WorkerLifetime::UntilDone, None));
        }
        Ok(())
    }
}
