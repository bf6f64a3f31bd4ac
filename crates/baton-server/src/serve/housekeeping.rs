//! Stores what requests have noted in memory: repeated refusals for the audit trail, and when keys were used.

use std::time::{Duration, Instant};

use crate::app::App;
use crate::trail;

/// Interval between two checks.
const TICK: Duration = Duration::from_secs(5);
/// Interval between two writes of a key's last use.
const KEY_USES: Duration = Duration::from_mins(1);

/// Never returns. A failure to write is logged.
pub(super) async fn run(app: App) {
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut stored = Instant::now();
    loop {
        ticks.tick().await;
        let now = Instant::now();
        trail::flush(&app, now).await;
        if now.saturating_duration_since(stored) >= KEY_USES {
            store_key_uses(&app).await;
            stored = now;
        }
    }
}

/// At shutdown, after the last request.
pub(super) async fn finish(app: &App) {
    trail::flush_all(app).await;
    store_key_uses(app).await;
}

async fn store_key_uses(app: &App) {
    for (tenant, used) in app.identity.take_key_uses() {
        if let Err(error) = app.store().tenant(&tenant).touch_keys(used).await {
            tracing::warn!(%error, %tenant, "the last use of keys cannot be stored");
        }
    }
}
