//! A circuit breaker: an agent that is down is not asked for a while, so that runs fail at once instead of after a time-out.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use baton_core::remote::{RemoteError, RemoteErrorKind};
use tokio::time::Instant;

/// Consecutive failures after which the circuit opens.
const MAX_FAILURES: u32 = 5;
/// How long the circuit stays open. Then one request tries.
const OPEN_TIME: Duration = Duration::from_secs(30);

#[derive(Debug, Default)]
pub(super) struct Breaker(Mutex<BreakerState>);

#[derive(Debug, Default)]
struct BreakerState {
    failures: u32,
    open_until: Option<Instant>,
}

impl Breaker {
    /// Fails while the circuit is open. The first call afterwards passes, and the others wait for its result.
    pub(super) fn check(&self) -> Result<(), RemoteError> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        match state.open_until {
            Some(until) if now < until => {
                let message = format!(
                    "it failed {} times in a row and is not asked again for {} s",
                    state.failures,
                    (until - now).as_secs() + 1
                );
                Err(RemoteError::new(RemoteErrorKind::Unreachable, message))
            }
            Some(_) => {
                state.open_until = Some(now + OPEN_TIME);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Counts the result of a request. Only a peer that cannot be reached counts as a failure.
    pub(super) fn count<T>(&self, result: &Result<T, RemoteError>) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match result {
            Err(error) if error.kind.is_down() => {
                state.failures = state.failures.saturating_add(1);
                if state.failures >= MAX_FAILURES {
                    state.open_until = Some(Instant::now() + OPEN_TIME);
                }
            }
            _ => *state = BreakerState::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn circuit_opens_after_failures_and_closes_after_a_success() {
        let down = || Err::<(), _>(RemoteError::new(RemoteErrorKind::Unreachable, "refused"));
        let breaker = Breaker::default();
        for _ in 0..MAX_FAILURES {
            assert!(breaker.check().is_ok());
            breaker.count(&down());
        }
        let error = breaker.check().unwrap_err();
        assert!(error.message.contains("5 times in a row"), "{error}");
        tokio::time::advance(OPEN_TIME).await;
        assert!(breaker.check().is_ok(), "one request tries");
        assert!(breaker.check().is_err(), "the others wait for it");
        breaker.count(&Ok(()));
        assert!(breaker.check().is_ok() && breaker.check().is_ok());
    }

    #[test]
    fn refusal_of_a_peer_is_no_failure() {
        let breaker = Breaker::default();
        for _ in 0..20 {
            breaker.count(&Err::<(), _>(RemoteError::new(RemoteErrorKind::Refused, "no")));
        }
        assert!(breaker.check().is_ok());
    }
}
