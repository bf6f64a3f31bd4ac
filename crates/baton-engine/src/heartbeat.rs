//! The lease of this process. The runs that it has claimed stay its own as long as it renews the lease, by one heartbeat a second
//! for all of them.
//!
//! The first claim takes the lease and starts the heartbeat, which lasts until the engine is drained or dropped. A process that
//! cannot renew its lease gives up its runs before the lease expires, because another process may claim them then. It returns
//! their claims as soon as the store answers again.
//!
//! A process that was paused or starved finds its lease expired. It keeps its runs if no other process had a lease since then.
//! Otherwise it gives them up: they may be executed elsewhere. From another process's claim on, its writes fail with `Fenced`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use baton_core::store::Claim;
use baton_core::{StoreError, TenantStore};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::failure::Failure;

/// The length of the lease and the interval of its renewal.
#[derive(Debug, Clone, Copy)]
pub struct HeartbeatConfig {
    pub length: Duration,
    pub beat: Duration,
}

impl Default for HeartbeatConfig {
    fn default() -> Self {
        Self { length: Duration::from_secs(6), beat: Duration::from_secs(1) }
    }
}

/// Time limit for returning one claim.
const RELEASE_TIMEOUT: Duration = Duration::from_millis(500);

/// What this process knows of its lease.
#[derive(Debug, Clone, Default)]
pub(crate) struct HeartbeatState {
    /// When the lease expires and others may claim the runs of this process. `None` before the first heartbeat.
    pub(crate) until: Option<Instant>,
    /// Why the lease could not be renewed in time.
    pub(crate) lost: Option<StoreError>,
    /// How often runs of this process may have been claimed by another one.
    pub(crate) lapses: u64,
}

/// The lease of this process and the task that renews it.
#[derive(Debug, Default)]
pub(crate) struct ProcessHeartbeat {
    pub(crate) state: watch::Sender<HeartbeatState>,
    pub(crate) task: Mutex<Option<HeartbeatTask>>,
    /// Held while the lease is taken, so that concurrent claims take it once.
    pub(crate) turn: tokio::sync::Mutex<()>,
    /// Set at shutdown: the process claims nothing more.
    pub(crate) is_stopped: AtomicBool,
    /// Claims of unfinished runs that this process no longer executes.
    abandoned: Mutex<Vec<(Arc<dyn TenantStore>, Claim)>>,
}

/// Aborts the heartbeat on drop.
#[derive(Debug)]
pub(crate) struct HeartbeatTask(pub(crate) JoinHandle<()>);

impl Drop for HeartbeatTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl ProcessHeartbeat {
    pub(crate) fn until(&self) -> Option<Instant> {
        let state = self.state.borrow();
        state.until.filter(|_| state.lost.is_none())
    }

    /// Stops the heartbeat permanently. The lease then expires.
    pub(crate) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Release);
        self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Returns a claim with the next heartbeat: its run has not ended, and this process no longer executes it.
    pub(crate) fn abandon(&self, store: &Arc<dyn TenantStore>, claim: &Claim) {
        let mut abandoned = self.abandoned.lock().unwrap_or_else(PoisonError::into_inner);
        abandoned.push((Arc::clone(store), claim.clone()));
    }

    pub(crate) async fn release_abandoned(&self) {
        let claims = std::mem::take(&mut *self.abandoned.lock().unwrap_or_else(PoisonError::into_inner));
        for (store, claim) in claims {
            // A call that hangs must not delay the next renewal.
            let released = tokio::time::timeout(RELEASE_TIMEOUT, store.abandon(&claim)).await;
            let released =
                released.unwrap_or_else(|_| Err(StoreError::Unavailable("the call timed out".to_owned())));
            if let Err(error) = released {
                tracing::warn!(run = %claim.run_id, %error, "cannot give a claim back; trying again");
                self.abandon(&store, &claim);
                return;
            }
        }
    }
}

/// The lease of this process, as one run sees it, and the run's cancellation.
#[derive(Debug)]
pub(crate) struct ClaimHeartbeat {
    state: watch::Receiver<HeartbeatState>,
    /// [`HeartbeatState::lapses`] when the run was claimed.
    lapses: u64,
    cancel: CancellationToken,
}

impl ClaimHeartbeat {
    /// `cancel` is the run's cancellation token.
    pub(crate) fn of(process: &ProcessHeartbeat, cancel: CancellationToken) -> Self {
        let state = process.state.subscribe();
        let lapses = state.borrow().lapses;
        Self { state, lapses, cancel }
    }

    /// When others may claim the run.
    pub(crate) fn until(&self) -> Instant {
        self.state.borrow().until.unwrap_or_else(Instant::now)
    }

    /// Whether the run is cancelled.
    pub(crate) fn is_ending(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Waits until the lease can no longer be renewed, and returns the reason. Cancel safe.
    pub(crate) async fn lost(&self) -> Failure {
        let mut state = self.state.clone();
        match state.wait_for(|state| state.lost.is_some() || state.lapses != self.lapses).await {
            Ok(state) => Failure::Store(
                state
                    .lost
                    .clone()
                    .unwrap_or_else(|| StoreError::Unavailable("the lease has expired".to_owned())),
            ),
            // The engine was dropped, and the heartbeat with it.
            Err(_) => Failure::Superseded,
        }
    }
}
