//! How often a tenant may ask: as often as it likes within a minute, as long as it is not more than it may.
//!
//! Only tenants are counted. Whoever has no valid credential costs one look at a hash, and an address says nothing behind a proxy.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use baton_core::TenantId;
use governor::clock::{Clock as _, DefaultClock};
use governor::middleware::StateInformationMiddleware;
use governor::state::keyed::DefaultKeyedStateStore;
use governor::{Quota, RateLimiter};
use http::{HeaderMap, HeaderValue};

/// After so many requests, tenants that have been quiet are forgotten.
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

/// Where a tenant stands after a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    per_minute: u32,
    remaining: u32,
    /// Seconds until there is something to use again, or until everything is.
    reset: u64,
    /// It has to wait so long.
    pub pause: Option<Duration>,
}

impl Rate {
    pub fn new(per_minute: NonZeroU32) -> Self {
        let limiter = RateLimiter::keyed(Quota::per_minute(per_minute)).with_middleware();
        Self { per_minute, limiter, clock: DefaultClock::default(), asked: AtomicU32::new(0) }
    }

    pub fn admit(&self, tenant: &TenantId) -> Standing {
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
                Standing { per_minute, remaining, reset, pause: None }
            }
            Err(refused) => {
                let pause = refused.wait_time_from(self.clock.now());
                // Whole seconds, and never too few: whoever comes back then is let in.
                let pause = Duration::from_secs(pause.as_secs() + 1);
                Standing { per_minute, remaining: 0, reset: pause.as_secs(), pause: Some(pause) }
            }
        }
    }
}

impl Standing {
    /// `RateLimit` and `RateLimit-Policy`, as draft-ietf-httpapi-ratelimit-headers-11 writes them.
    pub fn write(&self, headers: &mut HeaderMap) {
        let policy = format!("\"tenant\";q={};w={WINDOW}", self.per_minute);
        let now = format!("\"tenant\";r={};t={}", self.remaining, self.reset);
        for (name, text) in [("ratelimit-policy", policy), ("ratelimit", now)] {
            if let Ok(value) = HeaderValue::from_str(&text) {
                headers.insert(name, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tenants_that_are_quiet_are_forgotten() {
        // So fast that everybody's minute is over at once.
        let rate = Rate::new(NonZeroU32::MAX);
        for number in 0..(3 * FORGET_EVERY) {
            rate.admit(&TenantId::parse(&format!("t{number}")).unwrap());
        }
        assert!(rate.limiter.len() <= usize::try_from(FORGET_EVERY).unwrap(), "{}", rate.limiter.len());
    }
}
