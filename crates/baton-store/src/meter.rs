//! Load counters, and state shared by all transactions of a store.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use baton_core::store::StoreLoad;

use crate::audit::keys::AuditKeys;

/// Counters since the store was opened. They are read one by one, so a snapshot is not consistent across counters.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    batches: AtomicU64,
    writes: AtomicU64,
    waiting: AtomicU64,
    statements: AtomicU64,
}

/// Each token with the time at which it was read.
type TokensByName = HashMap<String, (String, Instant)>;

/// State shared by all transactions of a store.
#[derive(Debug, Default)]
pub(crate) struct MeterShared {
    pub(crate) meter: Arc<Meter>,
    pub(crate) audit_keys: AuditKeys,
    tenants: Mutex<HashSet<Arc<str>>>,
    /// For each tenant and run limit, the runs that may be opened without counting.
    rooms: Mutex<HashMap<(Arc<str>, u32), Room>>,
    /// For each tenant, the tokens of names in the audit trail, and when each was read.
    audit_tokens: Mutex<HashMap<Arc<str>, TokensByName>>,
    /// Tenants close to their limit of open runs.
    short: Mutex<HashSet<Arc<str>>>,
}

/// Another process may erase a user: a token is read again after this time.
const TOKEN_LIFETIME: Duration = Duration::from_mins(1);
/// Tokens of a tenant that are remembered.
const TOKENS: usize = 10_000;
#[derive(Debug, Clone, Copy)]
struct Room {
    left: u64,
    open_at_most: u64,
}

impl MeterShared {
    pub(crate) fn new(audit_keys: AuditKeys) -> Self {
        Self { audit_keys, ..Self::default() }
    }

    /// The token of a name in the audit trail, if it was read not long ago.
    pub(crate) fn audit_token(&self, tenant: &str, name: &str) -> Option<String> {
        let tokens = self.audit_tokens.lock().unwrap_or_else(PoisonError::into_inner);
        let (token, read_at) = tokens.get(tenant)?.get(name)?;
        (read_at.elapsed() < TOKEN_LIFETIME).then(|| token.clone())
    }

    pub(crate) fn know_audit_token(&self, tenant: &str, name: &str, token: &str) {
        let mut tokens = self.audit_tokens.lock().unwrap_or_else(PoisonError::into_inner);
        let known = tokens.entry(tenant.into()).or_default();
        if known.len() >= TOKENS {
            known.clear();
        }
        known.insert(name.to_owned(), (token.to_owned(), Instant::now()));
    }

    pub(crate) fn forget_audit_token(&self, tenant: &str, name: &str) {
        let mut tokens = self.audit_tokens.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = tokens.get_mut(tenant) {
            known.remove(name);
        }
    }

    /// Whether the tenant is certainly in `tenants`.
    pub(crate) fn is_known(&self, tenant: &str) -> bool {
        self.tenants.lock().unwrap_or_else(PoisonError::into_inner).contains(tenant)
    }

    /// Whether a run may be opened without counting the open runs.
    pub(crate) fn has_room(&self, tenant: &str, most: u32) -> bool {
        let rooms = self.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        rooms.get(&(tenant.into(), most)).is_some_and(|room| room.left > 0)
    }

    /// Takes one of the runs that may be opened without counting. Returns `false` if there is none.
    pub(crate) fn take_room(&self, tenant: &str, most: u32) -> bool {
        let mut rooms = self.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        match rooms.get_mut(&(tenant.into(), most)) {
            Some(room) if room.left > 0 => {
                room.left -= 1;
                true
            }
            _ => false,
        }
    }

    /// The most runs that can be open, as far as this process knows; `None` if they have to be counted.
    pub(crate) fn open_at_most(&self, tenant: &str, most: u32) -> Option<u64> {
        let rooms = self.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        rooms.get(&(tenant.into(), most)).map(|room| room.open_at_most)
    }

    /// Sets the number of runs that may be opened without counting, after `open` were counted.
    pub(crate) fn set_room(&self, tenant: &str, most: u32, left: u64, open: u64) {
        let mut rooms = self.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        if left == 0 {
            rooms.remove(&(tenant.into(), most));
        } else {
            rooms.insert((tenant.into(), most), Room { left, open_at_most: open + left });
        }
    }

    /// Whether the tenant was close to its limit when its open runs were last counted.
    pub(crate) fn is_short(&self, tenant: &str) -> bool {
        self.short.lock().unwrap_or_else(PoisonError::into_inner).contains(tenant)
    }

    pub(crate) fn set_short(&self, tenant: &str, is_short: bool) {
        let mut short = self.short.lock().unwrap_or_else(PoisonError::into_inner);
        if is_short {
            short.insert(tenant.into());
        } else {
            short.remove(tenant);
        }
    }

    /// Records that the tenant is in `tenants`. Call after the commit.
    pub(crate) fn know(&self, tenant: &str) {
        if !self.is_known(tenant) {
            self.tenants.lock().unwrap_or_else(PoisonError::into_inner).insert(tenant.into());
        }
    }
}

/// RAII guard: counts a waiting job until dropped.
#[derive(Debug)]
pub(crate) struct WaitingJob(Arc<Meter>);

impl Meter {
    pub(crate) fn enter(self: &Arc<Self>) -> WaitingJob {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        WaitingJob(Arc::clone(self))
    }

    /// Counts a committed transaction in which `writes` jobs wrote.
    pub(crate) fn committed(&self, writes: u64) {
        if writes > 0 {
            self.batches.fetch_add(1, Ordering::Relaxed);
            self.writes.fetch_add(writes, Ordering::Relaxed);
        }
    }

    /// Counts statements sent to the database.
    pub(crate) fn executed(&self, statements: u64) {
        self.statements.fetch_add(statements, Ordering::Relaxed);
    }

    pub(crate) fn load(&self) -> StoreLoad {
        StoreLoad {
            batches: self.batches.load(Ordering::Relaxed),
            writes: self.writes.load(Ordering::Relaxed),
            waiting: self.waiting.load(Ordering::Relaxed),
            statements: self.statements.load(Ordering::Relaxed),
        }
    }
}

impl Drop for WaitingJob {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}
