//! Rate limit per tenant, with a burst of one minute's requests.
//!
//! Only tenants are counted here; failed authentications are limited per address by the identity layer.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use baton_core::TenantId;
use governor::clock::{Clock as _, DefaultClock};
use governor::middleware::StateInformationMiddleware;
use governor::state::keyed::DefaultKeyedStateStore;
use governor::{Quota, RateLimiter};
use http::{HeaderMap, HeaderName, HeaderValue};

/// Idle tenants are removed after this many requests.
const FORGET_EVERY: u32 = 4096;
const WINDOW: u64 = 60;

type Limiter =
    RateLimiter<TenantId, DefaultKeyedStateStore<TenantId>, DefaultClock, StateInformationMiddleware>;

#[derive(Debug)]
pub struct Rate {
    per_minute: NonZeroU32,
    limiter: Limiter,
    clock: DefaultClock,
    asked: AtomicU32,
}

/// A tenant's rate limit after a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimitState {
    per_minute: u32,
    remaining: u32,
    /// Seconds until the limit is fully restored; for a refused request, until the next one is admitted.
    reset: u64,
    /// The delay for a refused request.
    pub pause: Option<Duration>,
}

impl Rate {
    pub fn new(per_minute: NonZeroU32) -> Self {
        let limiter = RateLimiter::keyed(Quota::per_minute(per_minute)).with_middleware();
        Self { per_minute, limiter, clock: DefaultClock::default(), asked: AtomicU32::new(0) }
    }

    pub fn admit(&self, tenant: &TenantId) -> RateLimitState {
        if self.asked.fetch_add(1, Ordering::Relaxed) % FORGET_EVERY == FORGET_EVERY - 1 {
            self.limiter.retain_recent();
            self.limiter.shrink_to_fit();
        }
        let per_minute = self.per_minute.get();
        match self.limiter.check_key(tenant) {
            Ok(snapshot) => {
                let remaining = snapshot.remaining_burst_capacity().min(per_minute);
                let used = u64::from(per_minute - remaining);
                let reset = (used * WINDOW).div_ceil(u64::from(per_minute));
                RateLimitState { per_minute, remaining, reset, pause: None }
            }
            Err(refused) => {
                let pause = refused.wait_time_from(self.clock.now());
                // Rounded up to whole seconds, so that a retry after this time is admitted.
                let pause = Duration::from_secs(pause.as_secs() + 1);
                RateLimitState { per_minute, remaining: 0, reset: pause.as_secs(), pause: Some(pause) }
            }
        }
    }
}

impl RateLimitState {
    /// Writes `RateLimit` and `RateLimit-Policy` as in draft-ietf-httpapi-ratelimit-headers-11.
    pub fn write(&self, headers: &mut HeaderMap) {
        let policy = format!("\"tenant\";q={};w={WINDOW}", self.per_minute);
        let now = format!("\"tenant\";r={};t={}", self.remaining, self.reset);
        for (name, text) in [("ratelimit-policy", policy), ("ratelimit", now)] {
            // Takes the text without copying it.
            if let Ok(value) = HeaderValue::try_from(text) {
                headers.insert(HeaderName::from_static(name), value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tenants_that_are_quiet_are_forgotten() {
        // So fast that every tenant's limit is restored immediately.
        let rate = Rate::new(NonZeroU32::MAX);
        for number in 0..(3 * FORGET_EVERY) {
            rate.admit(&TenantId::parse(&format!("t{number}")).unwrap());
        }
        assert!(rate.limiter.len() <= usize::try_from(FORGET_EVERY).unwrap(), "{}", rate.limiter.len());
    }
}
