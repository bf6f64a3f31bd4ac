//! The hook for metrics.

use std::fmt;

use baton_core::{Event, LedgerRow, StoreError, TenantId};

/// Observes all runs of this process, in order per run. Stored events and rows are reported after their append. Methods must not
/// block.
pub trait Observer: Send + Sync + fmt::Debug {
    fn on_event(&self, tenant: &TenantId, event: &Event);

    /// Rows that an append has stored.
    fn on_ledger_rows(&self, tenant: &TenantId, rows: &[LedgerRow]);

    /// An append failed. It may be retried.
    fn on_store_error(&self, _error: &StoreError) {}
}
