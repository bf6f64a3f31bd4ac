//! Limits of open streams, per user and per tenant: SSE, WebSocket and A2A together.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use baton_core::{TenantId, UserId};

use crate::identity::{AuthenticationMode, Principal};
use crate::problem::{ApiResult, Code, Problem};
use crate::settings::RequestLimits;

/// `Retry-After` of a refused stream.
const PAUSE: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub struct StreamPermits {
    per_user: usize,
    per_tenant: usize,
    open: Arc<Mutex<HashMap<TenantId, OpenStreams>>>,
}

/// The open streams of a tenant; none is empty.
#[derive(Debug, Default)]
struct OpenStreams {
    total: usize,
    by_user: HashMap<UserId, usize>,
}

/// RAII guard: counts an open stream.
#[derive(Debug)]
#[must_use = "the stream is counted only while the permit is held"]
pub struct StreamPermit {
    tenant: TenantId,
    user: UserId,
    open: Arc<Mutex<HashMap<TenantId, OpenStreams>>>,
}

impl StreamPermits {
    /// In open mode there is only one user, who may have all streams of the tenant.
    pub fn new(limits: &RequestLimits, mode: AuthenticationMode) -> Self {
        let per_tenant = limits.max_streams_per_tenant;
        let per_user = match mode {
            AuthenticationMode::Open => per_tenant,
            AuthenticationMode::Required => limits.max_streams_per_user,
        };
        Self { per_user, per_tenant, open: Arc::default() }
    }

    /// Counts one more stream of the caller, unless a limit is reached. Acquire it before anything is done for the stream, such as
    /// starting a run.
    pub fn open(&self, caller: &Principal) -> ApiResult<StreamPermit> {
        let Principal { tenant, user, .. } = caller;
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let known = open.get(tenant);
        let total = known.map_or(0, |streams| streams.total);
        let own = known.and_then(|streams| streams.by_user.get(user)).copied().unwrap_or(0);
        if own >= self.per_user {
            return Err(too_many(&format!("you have {own} open streams, which is the limit of a user")));
        }
        if total >= self.per_tenant {
            return Err(too_many(&format!("the tenant has {total} open streams, which is its limit")));
        }
        let streams = open.entry(tenant.clone()).or_default();
        streams.total += 1;
        *streams.by_user.entry(user.clone()).or_default() += 1;
        Ok(StreamPermit { tenant: tenant.clone(), user: user.clone(), open: Arc::clone(&self.open) })
    }
}

fn too_many(reason: &str) -> Problem {
    let detail = format!("{reason}: close streams that are not read any more, or try again later");
    Problem::new(Code::TooManyStreams, detail).retry_after(PAUSE)
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(streams) = open.get_mut(&self.tenant) else { return };
        streams.total -= 1;
        if streams.total == 0 {
            open.remove(&self.tenant);
            return;
        }
        if let Some(own) = streams.by_user.get_mut(&self.user) {
            *own -= 1;
            if *own == 0 {
                streams.by_user.remove(&self.user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(tenant: &str, user: &str) -> Principal {
        let (tenant, user) = (TenantId::parse(tenant).unwrap(), UserId::parse(user).unwrap());
        Principal { tenant, user, ..Principal::local() }
    }

    #[test]
    fn one_user_cannot_take_the_streams_of_others() {
        let limits =
            RequestLimits { max_streams_per_user: 2, max_streams_per_tenant: 3, ..RequestLimits::default() };
        let permits = StreamPermits::new(&limits, AuthenticationMode::Required);
        let (ann, bob, eve) = (caller("acme", "ann"), caller("acme", "bob"), caller("other", "ann"));
        let mut held = vec![permits.open(&ann).unwrap(), permits.open(&ann).unwrap()];
        let refused = permits.open(&ann).unwrap_err();
        assert_eq!(refused.code, Code::TooManyStreams);
        assert!(refused.detail.contains("limit of a user") && refused.pause() == Some(PAUSE), "{refused:?}");
        held.push(permits.open(&bob).unwrap());
        assert!(permits.open(&bob).unwrap_err().detail.contains("tenant"));
        held.push(permits.open(&eve).unwrap());
        drop(held.remove(0));
        held.push(permits.open(&ann).unwrap());
        drop(held);
        assert!(permits.open.lock().unwrap().is_empty());
    }
}
