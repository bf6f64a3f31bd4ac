//! Runs whose process is gone are taken up again; what has outlived its time is removed.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use baton_core::store::{Retention, Swept};
use baton_core::{Store, StoreError, TenantId, ThreadId};
use futures_util::future::join_all;
use tokio::time::Instant;

use crate::engine::{Engine, Identity};
use crate::workers::Stays;

/// Threads that are taken up in one go.
const AT_ONCE: u32 = 64;
const BETWEEN_SWEEPS: Duration = Duration::from_hours(1);

/// Ends the leases of processes that are certainly gone. Returns how many runs that concerns.
pub async fn release_gone(store: &dyn Store, identity: &Identity) -> Result<u64, StoreError> {
    let mut released = 0;
    for owner in store.owners().await? {
        if owner != identity.owner && (identity.is_gone)(&owner) {
            released += store.release(&owner).await?;
        }
    }
    Ok(released)
}

/// Removes what has outlived its time, for every tenant. History stays.
pub async fn sweep(store: &dyn Store, retention: Retention) -> Result<Swept, StoreError> {
    let mut all = Swept::default();
    for tenant in store.tenants().await? {
        // What is wrong with one tenant does not concern the others.
        match store.tenant(&tenant).sweep(retention).await {
            Ok(swept) => all += swept,
            Err(error) => tracing::warn!(%tenant, %error, "cannot sweep"),
        }
    }
    Ok(all)
}

impl Engine {
    /// See [`release_gone`].
    pub async fn release_gone(&self) -> Result<u64, StoreError> {
        release_gone(&*self.parts.store, &self.parts.identity).await
    }

    /// Takes up every run that nobody works on, of any tenant, and waits until they have ended. Returns how many threads were
    /// worked on.
    pub async fn recover(self: &Arc<Self>) -> Result<usize, StoreError> {
        self.release_gone().await?;
        // One that cannot be worked on stays due; it is not tried twice.
        let mut tried = HashSet::new();
        loop {
            let mut due =
                self.parts.store.due(AT_ONCE + u32::try_from(tried.len()).unwrap_or(u32::MAX)).await?;
            due.retain(|key| tried.insert(key.clone()));
            if due.is_empty() {
                return Ok(tried.len());
            }
            join_all(due.into_iter().filter_map(|key| self.wake(key, Stays::UntilDone, None))).await;
        }
    }

    /// Sees to it that what is left to do in one thread is done, also where nobody waits for it.
    pub fn take_up_thread(self: &Arc<Self>, tenant: &TenantId, thread: ThreadId) {
        drop(self.wake((tenant.clone(), thread), Stays::UntilDone, None));
    }

    /// Looks after everything that nobody waits for, again and again. Whoever starts this owns it: it never ends by itself.
    pub async fn keep_watch(self: Arc<Self>, every: Duration) {
        let mut next_sweep = Instant::now();
        loop {
            if let Err(error) = self.take_up().await {
                tracing::warn!(%error, "cannot look for runs to take up");
            }
            if let Err(error) = self.parts.store.seal_audit().await {
                tracing::warn!(%error, "cannot seal the audit trail");
            }
            if Instant::now() >= next_sweep {
                next_sweep = Instant::now() + BETWEEN_SWEEPS;
                self.end_expired_everywhere().await;
                if let Err(error) = sweep(&*self.parts.store, self.parts.retention).await {
                    tracing::warn!(%error, "cannot sweep");
                }
            }
            tokio::time::sleep(every).await;
        }
    }

    async fn end_expired_everywhere(&self) {
        let tenants = self.parts.store.tenants().await.unwrap_or_default();
        for tenant in tenants {
            if let Err(error) = self.end_expired(&self.parts.store.tenant(&tenant)).await {
                tracing::warn!(%tenant, %error, "cannot end handoffs whose time is over");
            }
        }
    }

    /// The same as [`Engine::recover`] without waiting for the end.
    async fn take_up(self: &Arc<Self>) -> Result<(), StoreError> {
        self.release_gone().await?;
        for key in self.parts.store.due(AT_ONCE).await? {
            drop(self.wake(key, Stays::UntilDone, None));
        }
        Ok(())
    }
}
