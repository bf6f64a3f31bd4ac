//! The lease of this process. All runs that it has claimed are its own for as long as it renews the lease, by one beat a second for
//! all of them.
//!
//! The first claim takes the lease and starts the beat; it goes on until the engine is drained or dropped. A process that
//! cannot renew its lease gives up its runs before the lease ends, because another process may take them over then. Their claims are given
//! back as soon as the store answers again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use baton_core::store::Claim;
use baton_core::{StoreError, TenantStore};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::engine::Engine;
use crate::failure::Failure;

/// How long a silent process keeps its runs, and how often it renews that.
#[derive(Debug, Clone, Copy)]
pub struct LeaseTimes {
    pub length: Duration,
    pub beat: Duration,
}

impl Default for LeaseTimes {
    fn default() -> Self {
        Self { length: Duration::from_secs(6), beat: Duration::from_secs(1) }
    }
}

/// How long giving one claim back may take.
const GIVING_BACK: Duration = Duration::from_millis(500);

/// What is known of the lease.
#[derive(Debug, Clone, Default)]
struct State {
    /// When others will take the runs of this process for abandoned. `None` before the first beat.
    until: Option<Instant>,
    /// Why it could not be renewed in time.
    lost: Option<StoreError>,
}

/// The lease of this process.
#[derive(Debug, Default)]
pub(crate) struct ProcessLease {
    state: watch::Sender<State>,
    beating: Mutex<Option<Beating>>,
    /// Held by the task that takes the lease.
    turn: tokio::sync::Mutex<()>,
    /// Set when the process shuts down: it claims nothing any more.
    is_stopped: AtomicBool,
    /// Claims of runs that nothing works on any more.
    abandoned: Mutex<Vec<(Arc<dyn TenantStore>, Claim)>>,
}

/// Ends the beat when it is dropped.
#[derive(Debug)]
struct Beating(JoinHandle<()>);

impl Drop for Beating {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl ProcessLease {
    fn until(&self) -> Option<Instant> {
        let state = self.state.borrow();
        state.until.filter(|_| state.lost.is_none())
    }

    /// Ends the beat, for good. The lease then ends by itself.
    pub(crate) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Release);
        self.beating.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Gives a claim back with the next beat: its run has not ended, and nothing here works on it any more.
    pub(crate) fn abandon(&self, store: &Arc<dyn TenantStore>, claim: &Claim) {
        let mut abandoned = self.abandoned.lock().unwrap_or_else(PoisonError::into_inner);
        abandoned.push((Arc::clone(store), claim.clone()));
    }

    async fn give_back(&self) {
        let claims = std::mem::take(&mut *self.abandoned.lock().unwrap_or_else(PoisonError::into_inner));
        for (store, claim) in claims {
            // One that hangs must not keep the lease from being renewed.
            let given = tokio::time::timeout(GIVING_BACK, store.abandon(&claim)).await;
            let given = given.unwrap_or_else(|_| Err(StoreError::Unavailable("it hangs".to_owned())));
            if let Err(error) = given {
                tracing::warn!(run = %claim.run_id, %error, "cannot give a claim back; trying again");
                self.abandon(&store, &claim);
                return;
            }
        }
    }
}

impl Engine {
    /// Sees to it that this process has a lease, and that it is renewed.
    pub(crate) async fn hold_lease(self: &Arc<Self>) -> Result<(), StoreError> {
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
        let mut beating = self.lease.beating.lock().unwrap_or_else(PoisonError::into_inner);
        beating.get_or_insert_with(|| Beating(tokio::spawn(keep_beating(Arc::downgrade(self)))));
        Ok(())
    }

    /// Renews the lease, and passes on which runs are to end.
    async fn beat(&self) -> Result<(), StoreError> {
        let times = self.parts.lease;
        let asked = Instant::now();
        // One that hangs is given up while there is still time to stop.
        let stop_at = self.lease.until().map(|until| until - times.beat.min(times.length / 2));
        if stop_at.is_some_and(|stop_at| stop_at <= asked) {
            let over = StoreError::Unavailable("the lease is over".to_owned());
            self.lease.state.send_modify(|state| state.lost = Some(over));
        }
        let patience = stop_at.filter(|stop_at| *stop_at > asked).unwrap_or(asked + times.length);
        let beat = self.parts.store.beat(&self.parts.identity.owner, times.length);
        let hangs = |_| Err(StoreError::Unavailable("a beat hangs".to_owned()));
        match tokio::time::timeout_at(patience, beat).await.unwrap_or_else(hangs) {
            Ok(cancelled) => {
                self.lease.state.send_replace(State { until: Some(asked + times.length), lost: None });
                for (_, run, how) in cancelled {
                    self.workers.cancel(run, how);
                }
                self.lease.give_back().await;
                Ok(())
            }
            Err(error) => {
                tracing::warn!(%error, "the lease of this process was not renewed");
                // A process that cannot renew its lease has to stop before another one takes over.
                if self.lease.until().is_some_and(|until| Instant::now() + times.beat >= until) {
                    self.lease.state.send_modify(|state| state.lost = Some(error.clone()));
                }
                Err(error)
            }
        }
    }
}

async fn keep_beating(engine: Weak<Engine>) {
    loop {
        let Some(beat) = engine.upgrade().map(|engine| engine.parts.lease.beat) else { return };
        tokio::time::sleep(beat).await;
        let Some(engine) = engine.upgrade() else { return };
        // What failed is in the log, and known to every run.
        let _ = engine.beat().await;
    }
}

/// The lease of this process, as one run sees it.
#[derive(Debug)]
pub(crate) struct Lease {
    state: watch::Receiver<State>,
    cancel: CancellationToken,
}

impl Lease {
    /// `cancel` ends the run.
    pub(crate) fn of(engine: &Engine, cancel: CancellationToken) -> Self {
        Self { state: engine.lease.state.subscribe(), cancel }
    }

    /// When others will take the run for abandoned.
    pub(crate) fn until(&self) -> Instant {
        self.state.borrow().until.unwrap_or_else(Instant::now)
    }

    /// Whether the run is to end.
    pub(crate) fn is_ending(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Waits until the lease cannot be renewed any more, and says why.
    pub(crate) async fn lost(&self) -> Failure {
        let mut state = self.state.clone();
        match state.wait_for(|state| state.lost.is_some()).await {
            Ok(state) => Failure::Store(
                state.lost.clone().unwrap_or_else(|| StoreError::Unavailable("the lease is over".to_owned())),
            ),
            // The engine is gone, and with it the beat.
            Err(_) => Failure::Superseded,
        }
    }
}
