//! How busy a store is.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use baton_core::store::Load;

/// Counts since the store was opened. Each number is right by itself; together they are as of about the same moment.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    batches: AtomicU64,
    writes: AtomicU64,
    waiting: AtomicU64,
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

    pub(crate) fn load(&self) -> Load {
        Load {
            batches: self.batches.load(Ordering::Relaxed),
            writes: self.writes.load(Ordering::Relaxed),
            waiting: self.waiting.load(Ordering::Relaxed),
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}
