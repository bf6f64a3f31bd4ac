//! The lease of this process. The runs that it has claimed stay its own as long as it renews the lease, by one heartbeat a second
//! for all of them.
//!
//! The first claim takes the lease and starts the heartbeat, which lasts until the engine is drained or dropped. A process that
//! cannot renew its lease gives up its runs before the lease expires, because another process may claim them then. It returns
//! their claims as soon as the store answers again.
//!
//! A process that was paused or starved finds its lease expired. It keeps its runs if no other process had a lease since then.
//! Otherwise it gives them up: they may be executed elsewhere. Its writes are fenced in any case.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use baton_core::store::{Claim, LeaseRenewal};
use baton_core::{StoreError, TenantStore};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::engine::Engine;
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
struct HeartbeatState {
    /// When the lease expires and others may claim the runs of this process. `None` before the first heartbeat.
    until: Option<Instant>,
    /// Why the lease could not be renewed in time.
    lost: Option<StoreError>,
    /// How often runs of this process may have been claimed by another one.
    lapses: u64,
}

/// The lease of this process and the task that renews it.
#[derive(Debug, Default)]
pub(crate) struct ProcessHeartbeat {
    state: watch::Sender<HeartbeatState>,
    task: Mutex<Option<HeartbeatTask>>,
    /// Held while the lease is taken, so that concurrent claims take it once.
    turn: tokio::sync::Mutex<()>,
    /// Set at shutdown: the process claims nothing more.
    is_stopped: AtomicBool,
    /// Claims of unfinished runs that this process no longer executes.
    abandoned: Mutex<Vec<(Arc<dyn TenantStore>, Claim)>>,
}

/// Aborts the heartbeat on drop.
#[derive(Debug)]
struct HeartbeatTask(JoinHandle<()>);

impl Drop for HeartbeatTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl ProcessHeartbeat {
    fn until(&self) -> Option<Instant> {
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

    async fn release_abandoned(&self) {
        let claims = std::mem::take(&mut *self.abandoned.lock().unwrap_or_else(PoisonError::into_inner));
        for (store, claim) in claims {
            // A call that hangs must not delay the next renewal.
            let released = tokio::time::timeout(RELEASE_TIMEOUT, store.abandon(&claim)).await;
            let released = released.unwrap_or_else(|_| Err(StoreError::Unavailable("it hangs".to_owned())));
            if let Err(error) = released {
                tracing::warn!(run = %claim.run_id, %error, "cannot give a claim back; trying again");
                self.abandon(&store, &claim);
                return;
            }
        }
    }
}

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
        task.get_or_insert_with(|| HeartbeatTask(tokio::spawn(heartbeat_loop(Arc::downgrade(self)))));
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
        let hangs = |_| Err(StoreError::Unavailable("a beat hangs".to_owned()));
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

async fn heartbeat_loop(engine: Weak<Engine>) {
    loop {
        let Some(beat) = engine.upgrade().map(|engine| engine.parts.lease.beat) else { return };
        tokio::time::sleep(beat).await;
        let Some(engine) = engine.upgrade() else { return };
        // `beat` logs errors, and runs watch the state.
        let _ = engine.beat().await;
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
    pub(crate) fn of(engine: &Engine, cancel: CancellationToken) -> Self {
        let state = engine.lease.state.subscribe();
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
