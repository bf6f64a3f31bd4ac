//! Retries store operations while the store is unavailable.

use std::time::Duration;

use baton_core::StoreError;
use baton_core::store::Pending;

/// For operations that a run depends on: 3 s in all.
pub(crate) const MAX_RETRIES: u32 = 10;
pub(crate) const RETRY_DELAY: Duration = Duration::from_millis(300);

/// Calls `attempt` until it returns anything but a transient error. Makes at most `max_retries` + 1 calls, `pause` apart, and
/// returns the last result.
pub(crate) async fn retry<'a, T>(
    max_retries: u32,
    pause: Duration,
    attempt: impl Fn() -> Pending<'a, T>,
) -> Result<T, StoreError> {
    for _ in 0..max_retries {
        match attempt().await {
            Err(error) if error.is_transient() => tokio::time::sleep(pause).await,
            other => return other,
        }
    }
    attempt().await
}
