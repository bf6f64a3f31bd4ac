//! Limits of stored bytes per user and tenant: messages, artifacts and spooled outputs.
//!
//! The store keeps a counter per thread, in a row that every message updates anyway. The sums are read when something is to be stored
//! and the last sum is old; until then, what this process stores is added to it. So the limit can be exceeded by what one message
//! leads to, and by what other processes store within [`FRESH`].

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use baton_core::{StoreError, TenantId, TenantStore, UserId};
use tokio::time::Instant;

/// How long a sum is used that is below its limit.
const FRESH: Duration = Duration::from_secs(30);
/// The same for a sum that is not: deleting something helps after this time. It bounds what a refused client costs.
const FRESH_IF_FULL: Duration = Duration::from_secs(1);
/// Sums that are remembered.
const SUMS: usize = 10_000;

/// `None` is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StorageLimits {
    pub per_user: Option<u64>,
    pub per_tenant: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
struct Sum {
    bytes: u64,
    read_at: Instant,
}

/// The sums that were read last, by tenant and user.
#[derive(Debug, Default)]
pub(crate) struct StorageSums(Mutex<HashMap<(TenantId, Option<UserId>), Sum>>);

impl StorageSums {
    /// Fails with [`StoreError::StorageFull`] if `adding` more bytes exceed a limit.
    pub(crate) async fn check(
        &self,
        limits: StorageLimits,
        data: &dyn TenantStore,
        user: &UserId,
        adding: u64,
    ) -> Result<(), StoreError> {
        let all = [("user", limits.per_user, Some(user)), ("tenant", limits.per_tenant, None)];
        for (whose, limit, user) in all {
            let Some(limit) = limit else { continue };
            if self.sum(data, user, limit, adding).await? > limit {
                return Err(StoreError::StorageFull { whose, limit });
            }
        }
        Ok(())
    }

    /// The sum with what is added, which counts only if it is below the limit.
    async fn sum(
        &self,
        data: &dyn TenantStore,
        user: Option<&UserId>,
        limit: u64,
        adding: u64,
    ) -> Result<u64, StoreError> {
        let key = (data.tenant().clone(), user.cloned());
        if let Some(total) = self.add_to_known(&key, limit, adding) {
            return Ok(total);
        }
        let bytes = data.stored_bytes(user).await?;
        let total = bytes.saturating_add(adding);
        let bytes = if total > limit { bytes } else { total };
        let mut sums = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if sums.len() >= SUMS {
            sums.clear();
        }
        sums.insert(key, Sum { bytes, read_at: Instant::now() });
        Ok(total)
    }

    fn add_to_known(&self, key: &(TenantId, Option<UserId>), limit: u64, adding: u64) -> Option<u64> {
        let mut sums = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let sum = sums.get_mut(key)?;
        let total = sum.bytes.saturating_add(adding);
        let lifetime = if total > limit { FRESH_IF_FULL } else { FRESH };
        if sum.read_at.elapsed() >= lifetime {
            return None;
        }
        if total <= limit {
            sum.bytes = total;
        }
        Some(total)
    }
}
