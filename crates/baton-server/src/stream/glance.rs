//! News by other processes. One task of the server asks the store about all threads that are followed here and worked on elsewhere, or
//! not at all: an idle stream costs a row of one query.

use std::collections::HashMap;
use std::time::Duration;

use baton_core::{StoreError, TenantId, ThreadId};
use tokio::time::MissedTickBehavior;

use crate::app::App;

/// How often it asks where a run is waited for.
const GLANCE: Duration = Duration::from_secs(1);
/// Every how many times it asks about all threads.
const ALL: u32 = 5;
/// Threads in one query.
const BATCH: usize = 100;

/// Looks until it is dropped.
pub async fn watch(app: App) {
    let mut ticks = tokio::time::interval(GLANCE);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for number in (0..ALL).cycle() {
        ticks.tick().await;
        look(&app, number == 0).await;
    }
}

/// Asks about each thread once. A store that does not answer is asked again the next time.
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
