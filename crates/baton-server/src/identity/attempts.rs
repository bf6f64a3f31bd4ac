//! Limits of failed authentications, per address.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use super::generations::Generations;
use crate::client_address::AddressKey;

/// Failures of one address at once, and then in a second.
const PER_ADDRESS: BucketSize = BucketSize { burst: 60.0, per_second: 5.0 };
/// Failures of all addresses together, so that guessing from many does not keep the store busy.
const IN_TOTAL: BucketSize = BucketSize { burst: 4000.0, per_second: 2000.0 };

/// Counts failed authentications. A look-up counts as failed until its key is found.
#[derive(Debug)]
pub(super) struct AttemptLimits(Mutex<Buckets>);

#[derive(Debug)]
struct Buckets {
    by_address: Generations<AddressKey, TokenBucket>,
    all: TokenBucket,
}

impl AttemptLimits {
    pub(super) fn new(now: Instant) -> Self {
        Self(Mutex::new(Buckets { by_address: Generations::new(), all: TokenBucket::new(IN_TOTAL, now) }))
    }

    /// Counts one failure. Returns `false` if there were too many.
    pub(super) fn take(&self, from: AddressKey, now: Instant) -> bool {
        let mut buckets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Buckets { by_address, all } = &mut *buckets;
        let own = by_address.get_or_insert_with(from, || TokenBucket::new(PER_ADDRESS, now));
        // The address first: one that is over its limit takes nothing from the others.
        own.take(now) && all.take(now)
    }

    /// Takes back one failure.
    pub(super) fn give_back(&self, from: AddressKey) {
        let mut buckets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        buckets.all.give_back();
        if let Some(own) = buckets.by_address.get(&from) {
            own.give_back();
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct BucketSize {
    burst: f64,
    per_second: f64,
}

#[derive(Debug)]
struct TokenBucket {
    size: BucketSize,
    left: f64,
    at: Instant,
}

impl TokenBucket {
    fn new(size: BucketSize, now: Instant) -> Self {
        Self { size, left: size.burst, at: now }
    }

    fn take(&mut self, now: Instant) -> bool {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        self.left = (self.left + passed * self.size.per_second).min(self.size.burst);
        self.at = self.at.max(now);
        let is_enough = self.left >= 1.0;
        if is_enough {
            self.left -= 1.0;
        }
        is_enough
    }

    fn give_back(&mut self) {
        self.left = (self.left + 1.0).min(self.size.burst);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::client_address::ClientAddress;

    fn from(last: u8) -> AddressKey {
        ClientAddress([192, 0, 2, last].into()).into()
    }

    #[test]
    fn failures_of_one_address_take_nothing_from_others() {
        let start = Instant::now();
        let limits = AttemptLimits::new(start);
        let admitted = (0..100_000).filter(|_| limits.take(from(1), start)).count();
        assert_eq!(admitted, 60);
        assert!(limits.take(from(2), start));
        assert!(limits.take(from(1), start + Duration::from_secs(1)), "it fills again");
    }

    #[test]
    fn found_keys_do_not_count() {
        let start = Instant::now();
        let limits = AttemptLimits::new(start);
        for _ in 0..10_000 {
            assert!(limits.take(from(1), start));
            limits.give_back(from(1));
        }
    }

    #[test]
    fn many_addresses_share_a_limit() {
        let start = Instant::now();
        let limits = AttemptLimits::new(start);
        let all = (0..=255).flat_map(|last| (0..60).map(move |_| from(last)));
        assert_eq!(all.filter(|from| limits.take(*from, start)).count(), 4000);
    }
}
