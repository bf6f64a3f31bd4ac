//! Detects events stored by other processes. One task queries the store for all threads that are followed here but not executed
//! here, so an idle stream costs one row of a query.

use std::collections::HashMap;
use std::time::Duration;

use baton_core::{StoreError, TenantId, ThreadId};
use tokio::time::MissedTickBehavior;

use crate::app::App;

/// Interval for threads with a subscriber that waits for a run.
const GLANCE: Duration = Duration::from_secs(1);
/// Every n-th time, all threads are queried.
const ALL: u32 = 5;
/// Threads per query.
const BATCH: usize = 100;

/// Polls until dropped.
pub async fn watch(app: App) {
    let mut ticks = tokio::time::interval(GLANCE);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for number in (0..ALL).cycle() {
        ticks.tick().await;
        look(&app, number == 0).await;
    }
}

/// Queries each thread once. Errors are logged, and the next tick tries again.
async fn look(app: &App, is_all: bool) {
    let mut by_tenant: HashMap<TenantId, Vec<ThreadId>> = HashMap::new();
    for (tenant, thread) in app.engine.parts.live.unpublished(is_all) {
        by_tenant.entry(tenant).or_default().push(thread);
    }
    for (tenant, threads) in by_tenant {
        for batch in threads.chunks(BATCH) {
            if let Err(error) = ask(app, &tenant, batch).await {
                tracing::warn!(%error, "cannot look for events of other processes");
                return;
            }
        }
    }
}

async fn ask(app: &App, tenant: &TenantId, threads: &[ThreadId]) -> Result<(), StoreError> {
    let last_seqs = app.store().tenant(tenant).last_seqs(threads).await?;
    let last_seqs: HashMap<ThreadId, u64> = last_seqs.into_iter().collect();
    for thread in threads {
        app.engine.parts.live.stored(tenant, *thread, last_seqs.get(thread).copied());
    }
    Ok(())
}
