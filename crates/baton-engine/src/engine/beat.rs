//! Takes and renews the lease of this process.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use baton_core::StoreError;
use baton_core::store::LeaseRenewal;
use tokio::time::Instant;

use super::Engine;
use crate::heartbeat::HeartbeatTask;

impl Engine {
    /// Ensures that this process has a lease and renews it. Fails after [`ProcessHeartbeat::stop`].
    pub(crate) async fn ensure_heartbeat(self: &Arc<Self>) -> Result<(), StoreError> {
        if self.lease.is_stopped.load(Ordering::Acquire) {
            return Err(StoreError::Unavailable("this process is shutting down".to_owned()));
        }
        let is_held =
            || self.lease.until().is_some_and(|until| Instant::now() + self.parts.lease.beat < until);
        if !is_held() {
            let _turn = self.lease.turn.lock().await;
            if !is_held() {
                self.beat().await?;
            }
        }
        let mut task = self.lease.task.lock().unwrap_or_else(PoisonError::into_inner);
        task.get_or_insert_with(|| {
            HeartbeatTask(tokio::spawn(heartbeat_loop(Arc::downgrade(self), self.parts.lease.beat)))
        });
        Ok(())
    }

    /// Renews the lease and cancels the runs that the store reports as cancelled.
    async fn beat(&self) -> Result<(), StoreError> {
        let times = self.parts.lease;
        let asked = Instant::now();
        // A call that hangs is given up while there is still time to stop the runs.
        let stop_at = self.lease.until().map(|until| until - times.beat.min(times.length / 2));
        let deadline = stop_at.filter(|stop_at| *stop_at > asked).unwrap_or(asked + times.length);
        let beat = self.parts.store.beat(&self.parts.identity.owner, times.length);
        let hangs = |_| Err(StoreError::Unavailable("the renewal of the lease timed out".to_owned()));
        match tokio::time::timeout_at(deadline, beat).await.unwrap_or_else(hangs) {
            Ok(LeaseRenewal { cancelled, was_claimable }) => {
                self.lease.state.send_modify(|state| {
                    (state.until, state.lost) = (Some(asked + times.length), None);
                    state.lapses += u64::from(was_claimable);
                });
                for (_, run, how) in cancelled {
                    self.workers.cancel(run, how);
                }
                self.lease.release_abandoned().await;
                Ok(())
            }
            Err(error) => {
                tracing::warn!(%error, "the lease of this process was not renewed");
                // The runs have to stop before another process claims them.
                if self.lease.until().is_some_and(|until| Instant::now() + times.beat >= until) {
                    self.lease.state.send_modify(|state| state.lost = Some(error.clone()));
                }
                Err(error)
            }
        }
    }
}

async fn heartbeat_loop(engine: Weak<Engine>, beat: Duration) {
    loop {
        tokio::time::sleep(beat).await;
        let Some(engine) = engine.upgrade() else { return };
        // `beat` logs errors, and runs watch the state.
        let _ = engine.beat().await;
    }
}
