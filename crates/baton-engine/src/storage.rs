//! Limits of stored bytes per user and tenant: messages, artifacts, spooled outputs and files of workspaces.
//!
//! The store keeps a counter per thread, in a row that every message updates anyway. The sums are read when something is to be stored
//! and the last sum is old; until then, what this process stores is added to it. So the limit can be exceeded by what one message
//! leads to, and by what other processes store within [`FRESH`].
//!
//! Files are measured after each tool call that may have written some. A tool is told how many bytes are left.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use baton_core::{StoreError, TenantId, TenantStore, ThreadId, UserId};
use tokio::time::Instant;

/// How long a sum is used that is below its limit.
const FRESH: Duration = Duration::from_secs(30);
/// The same for a sum that is not: deleting something helps after this time. It bounds what a refused client costs.
const FRESH_IF_FULL: Duration = Duration::from_secs(1);
/// A sum over many threads takes long. It is used for at least this many times as long, so that reading it stays a small share of the
/// time however many threads a user has.
const READ_SHARE: u32 = 50;
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
    /// How long it took to read.
    took: Duration,
}

/// The limits, and the sums that were read last.
#[derive(Debug)]
pub(crate) struct Storage {
    limits: StorageLimits,
    /// By tenant and user.
    sums: Mutex<HashMap<(TenantId, Option<UserId>), Sum>>,
    /// Bytes of the files of threads, as this process has recorded them.
    files: Mutex<HashMap<(TenantId, ThreadId), u64>>,
}

impl Storage {
    pub(crate) fn new(limits: StorageLimits) -> Self {
        Self { limits, sums: Mutex::default(), files: Mutex::default() }
    }

    pub(crate) fn has_limits(&self) -> bool {
        self.limits != StorageLimits::default()
    }

    /// Bytes that a user may still store; `None` without limits.
    pub(crate) async fn left(
        &self,
        data: &dyn TenantStore,
        user: &UserId,
    ) -> Result<Option<u64>, StoreError> {
        let mut left: Option<u64> = None;
        for (limit, user) in [(self.limits.per_user, Some(user)), (self.limits.per_tenant, None)] {
            let Some(limit) = limit else { continue };
            let of_limit = limit.saturating_sub(self.sum(data, user, limit, 0).await?);
            left = Some(left.map_or(of_limit, |left| left.min(of_limit)));
        }
        Ok(left)
    }

    /// Records how many bytes the files of a thread have, if that has changed, and forgets the sums that it is part of.
    pub(crate) async fn record_files(
        &self,
        data: &dyn TenantStore,
        user: &UserId,
        thread: ThreadId,
        bytes: u64,
    ) -> Result<(), StoreError> {
        let key = (data.tenant().clone(), thread);
        let known = self.files.lock().unwrap_or_else(PoisonError::into_inner).get(&key).copied();
        if known == Some(bytes) {
            return Ok(());
        }
        data.set_file_bytes(thread, bytes).await?;
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if files.len() >= SUMS {
            files.clear();
        }
        files.insert(key, bytes);
        drop(files);
        let mut sums = self.sums.lock().unwrap_or_else(PoisonError::into_inner);
        for user in [Some(user.clone()), None] {
            sums.remove(&(data.tenant().clone(), user));
        }
        Ok(())
    }

    /// Fails with [`StoreError::StorageFull`] if `adding` more bytes exceed a limit.
    pub(crate) async fn check(
        &self,
        data: &dyn TenantStore,
        user: &UserId,
        adding: u64,
    ) -> Result<(), StoreError> {
        let StorageLimits { per_user, per_tenant } = self.limits;
        let all = [("user", per_user, Some(user)), ("tenant", per_tenant, None)];
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
        let began = Instant::now();
        let bytes = data.stored_bytes(user).await?;
        let took = began.elapsed();
        let total = bytes.saturating_add(adding);
        let bytes = if total > limit { bytes } else { total };
        let mut sums = self.sums.lock().unwrap_or_else(PoisonError::into_inner);
        if sums.len() >= SUMS {
            sums.clear();
        }
        sums.insert(key, Sum { bytes, read_at: Instant::now(), took });
        Ok(total)
    }

    fn add_to_known(&self, key: &(TenantId, Option<UserId>), limit: u64, adding: u64) -> Option<u64> {
        let mut sums = self.sums.lock().unwrap_or_else(PoisonError::into_inner);
        let sum = sums.get_mut(key)?;
        let total = sum.bytes.saturating_add(adding);
        let lifetime = if total > limit { FRESH_IF_FULL } else { FRESH };
        if sum.read_at.elapsed() >= lifetime.max(sum.took * READ_SHARE) {
            return None;
        }
        if total <= limit {
            sum.bytes = total;
        }
        Some(total)
    }
}
