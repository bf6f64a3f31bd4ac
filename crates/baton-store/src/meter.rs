//! How busy a store is, and what all its transactions share.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use baton_core::store::Load;

/// Counts since the store was opened. Each number is right by itself; together they are as of about the same moment.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    batches: AtomicU64,
    writes: AtomicU64,
    waiting: AtomicU64,
    statements: AtomicU64,
}

/// What all transactions of a store share.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub(crate) meter: Arc<Meter>,
    tenants: Mutex<HashSet<Arc<str>>>,
    /// For each tenant and limit of open runs, how many may be opened without counting.
    rooms: Mutex<HashMap<(Arc<str>, u32), u64>>,
    /// Tenants that are near a limit of open runs.
    short: Mutex<HashSet<Arc<str>>>,
}

impl Shared {
    /// Whether the tenant is certainly among the tenants.
    pub(crate) fn is_known(&self, tenant: &str) -> bool {
        self.tenants.lock().unwrap_or_else(PoisonError::into_inner).contains(tenant)
    }

    /// Whether a run may be opened without counting those that are open.
    pub(crate) fn has_room(&self, tenant: &str, most: u32) -> bool {
        let rooms = self.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        rooms.get(&(tenant.into(), most)).is_some_and(|room| *room > 0)
    }

    /// The same, and opens it.
    pub(crate) fn take_room(&self, tenant: &str, most: u32) -> bool {
        let mut rooms = self.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        match rooms.get_mut(&(tenant.into(), most)) {
            Some(room) if *room > 0 => {
                *room -= 1;
                true
            }
            _ => false,
        }
    }

    /// So many may be opened without counting.
    pub(crate) fn set_room(&self, tenant: &str, most: u32, room: u64) {
        let mut rooms = self.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        if room == 0 {
            rooms.remove(&(tenant.into(), most));
        } else {
            rooms.insert((tenant.into(), most), room);
        }
    }

    /// Whether the tenant was near its limit of open runs when they were counted last.
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

    /// A transaction has committed that wrote for this tenant.
    pub(crate) fn know(&self, tenant: &str) {
        if !self.is_known(tenant) {
            self.tenants.lock().unwrap_or_else(PoisonError::into_inner).insert(tenant.into());
        }
    }
}

/// A job that somebody waits for, until this is dropped.
#[derive(Debug)]
pub(crate) struct Waiting(Arc<Meter>);

impl Meter {
    pub(crate) fn enter(self: &Arc<Self>) -> Waiting {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        Waiting(Arc::clone(self))
    }

    /// A transaction has committed in which so many jobs have written.
    pub(crate) fn committed(&self, writes: u64) {
        if writes > 0 {
            self.batches.fetch_add(1, Ordering::Relaxed);
            self.writes.fetch_add(writes, Ordering::Relaxed);
        }
    }

    /// Statements were sent to the database.
    pub(crate) fn executed(&self, statements: u64) {
        self.statements.fetch_add(statements, Ordering::Relaxed);
    }

    pub(crate) fn load(&self) -> Load {
        Load {
            batches: self.batches.load(Ordering::Relaxed),
            writes: self.writes.load(Ordering::Relaxed),
            waiting: self.waiting.load(Ordering::Relaxed),
            statements: self.statements.load(Ordering::Relaxed),
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}
