//! How long a handoff will probably take, by the completed ones of the same agent in the tenant.

use std::time::Duration;

use baton_core::{AgentName, TenantStore};

/// Handoffs that are looked at, the newest ones.
const SAMPLE: u32 = 50;
/// With fewer, there is no estimate.
const MIN_SAMPLE: usize = 3;

/// The median duration of the newest completed handoffs to `target`, in seconds. `None` with fewer than 3, or if the store cannot be
/// read: an estimate must not stop a handoff.
pub(crate) async fn estimate(store: &dyn TenantStore, target: &AgentName) -> Option<u64> {
    match store.completed_durations(target, SAMPLE).await {
        Ok(durations) => median(durations).map(|median| median.as_secs()),
        Err(error) => {
            tracing::warn!(%target, %error, "the duration of a handoff cannot be estimated");
            None
        }
    }
}

/// The middle one, or the mean of the two in the middle.
fn median(mut durations: Vec<Duration>) -> Option<Duration> {
    if durations.len() < MIN_SAMPLE {
        return None;
    }
    durations.sort_unstable();
    let middle = durations.len() / 2;
    let below = if durations.len().is_multiple_of(2) { middle - 1 } else { middle };
    Some((durations[below] + durations[middle]) / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_ignores_outliers() {
        let seconds = |all: &[u64]| median(all.iter().map(|one| Duration::from_secs(*one)).collect());
        assert_eq!(seconds(&[60, 100]), None);
        assert_eq!(seconds(&[60, 90_000, 100]), Some(Duration::from_secs(100)));
        assert_eq!(seconds(&[60, 90_000, 100, 200]), Some(Duration::from_secs(150)));
    }
}
