//! Who counts what happens in all runs of this process, without having a say in it.

use std::fmt;

use baton_core::{Event, LedgerRow, StoreError, TenantId};

/// Told after it was kept, in order per run. Must not block.
pub trait Observer: Send + Sync + fmt::Debug {
    fn happened(&self, tenant: &TenantId, event: &Event);

    /// Calls that were paid for.
    fn paid(&self, tenant: &TenantId, rows: &[LedgerRow]);

    /// The store did not take a write. It may be tried again.
    fn stumbled(&self, _error: &StoreError) {}
}
