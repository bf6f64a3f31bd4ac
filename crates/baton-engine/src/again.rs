//! A store that is away for a while costs that while.

use std::time::Duration;

use baton_core::StoreError;
use baton_core::store::Pending;

/// Asks again, `times` at most, while the store says that it may answer later.
pub(crate) async fn again<'a, T>(
    times: u32,
    pause: Duration,
    ask: impl Fn() -> Pending<'a, T>,
) -> Result<T, StoreError> {
    for _ in 0..times {
        match ask().await {
            Err(error) if error.is_passing() => tokio::time::sleep(pause).await,
            other => return other,
        }
    }
    ask().await
}
