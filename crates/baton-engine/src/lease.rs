//! Staying the one who works on a run.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use baton_core::store::{Cancel, Claim};
use baton_core::{StoreError, TenantStore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::failure::Failure;

/// How long a silent process keeps its runs, and how often it says that it is there.
#[derive(Debug, Clone, Copy)]
pub struct LeaseTimes {
    pub length: Duration,
    pub beat: Duration,
}

impl Default for LeaseTimes {
    fn default() -> Self {
        Self { length: Duration::from_secs(20), beat: Duration::from_secs(2) }
    }
}

/// When others will take the run for abandoned.
#[derive(Debug)]
pub(crate) struct Lease {
    times: LeaseTimes,
    until: Mutex<Instant>,
    stop: CancellationToken,
    cancel: CancellationToken,
}

impl Lease {
    /// From when it was asked for. `stop` asks the run for a closing turn, `cancel` ends it.
    pub(crate) fn new(
        times: LeaseTimes,
        asked: Instant,
        stop: CancellationToken,
        cancel: CancellationToken,
    ) -> Self {
        Self { times, until: Mutex::new(asked + times.length), stop, cancel }
    }

    pub(crate) fn until(&self) -> Instant {
        *self.until.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether somebody wants the run to end.
    pub(crate) fn is_ending(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Beats until the run is not ours any more, and says why. Passes on that somebody wants it to end.
    pub(crate) async fn hold(&self, store: &dyn TenantStore, claim: &Claim) -> Failure {
        loop {
            tokio::time::sleep(self.times.beat).await;
            let asked = Instant::now();
            // One that hangs is given up while there is still time to stop.
            let patience = self.until() - self.times.beat.min(self.times.length / 2);
            let beat = tokio::time::timeout_at(patience, store.heartbeat(claim, self.times.length));
            match beat.await.unwrap_or_else(|_| Err(StoreError::Unavailable("a heartbeat hangs".to_owned())))
            {
                Ok(beat) => {
                    *self.until.lock().unwrap_or_else(PoisonError::into_inner) = asked + self.times.length;
                    match beat.cancel {
                        None => {}
                        Some(Cancel::Stop) => self.stop.cancel(),
                        Some(Cancel::Abort) => self.cancel.cancel(),
                    }
                }
                Err(StoreError::Fenced) => return Failure::Superseded,
                // Whoever cannot be heard must stop before somebody else begins.
                Err(error) if Instant::now() + self.times.beat >= self.until() => {
                    return Failure::Store(error);
                }
                Err(error) => tracing::warn!(run = %claim.run_id, %error, "a heartbeat was not heard"),
            }
        }
    }
}
