//! Retries store operations while the store is unavailable.

use std::time::Duration;

use baton_core::StoreError;
use baton_core::store::Pending;

/// For operations that a run depends on: 3 s in all.
pub(crate) const MAX_RETRIES: u32 = 10;
pub(crate) const RETRY_DELAY: Duration = Duration::from_millis(300);

/// Calls `attempt` until it returns anything but a transient error. Makes at most `max_retries` + 1 calls, `pause` apart, and
/// returns the last result. If the outcome of any attempt is unknown, that of all of them is, unless one succeeds or is refused.
pub(crate) async fn retry<'a, T>(
    max_retries: u32,
    pause: Duration,
    attempt: impl Fn() -> Pending<'a, T>,
) -> Result<T, StoreError> {
    let mut unknown = None;
    for retries in 0..=max_retries {
        match attempt().await {
            Err(error) if error.is_transient() => {
                if matches!(error, StoreError::OutcomeUnknown(_)) {
                    unknown = Some(error);
                } else if retries == max_retries {
                    return Err(unknown.unwrap_or(error));
                }
            }
            other => return other,
        }
        if retries < max_retries {
            tokio::time::sleep(pause).await;
        }
    }
    Err(unknown.unwrap_or_else(|| StoreError::Unavailable("no attempt was made".to_owned())))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    async fn after(errors: &[StoreError]) -> StoreError {
        let left = Mutex::new(errors.to_vec());
        let attempt = || -> Pending<'_, ()> {
            let error = left.lock().unwrap().remove(0);
            Box::pin(async { Err(error) })
        };
        let retries = u32::try_from(errors.len()).unwrap() - 1;
        retry(retries, Duration::ZERO, attempt).await.unwrap_err()
    }

    #[tokio::test]
    async fn an_unknown_outcome_stays_unknown_until_an_attempt_is_decided() {
        let unavailable = || StoreError::Unavailable("refused".to_owned());
        let unknown = || StoreError::OutcomeUnknown("cut".to_owned());
        assert_eq!(after(&[unknown(), unavailable(), unavailable()]).await, unknown());
        assert_eq!(after(&[unavailable(), unknown()]).await, unknown());
        assert_eq!(after(&[unavailable(), unavailable()]).await, unavailable());
        assert_eq!(after(&[unknown(), StoreError::ThreadNotFound]).await, StoreError::ThreadNotFound);
    }
}
