//! Results that may be used again for a while.

use jiff::Timestamp;
use serde_json::Value;

use crate::store::Pending;

pub trait Cache: Send + Sync {
    /// `None` when there is none or its time is over.
    fn cached(&self, key: &str) -> Pending<'_, Option<Value>>;

    fn keep(&self, key: &str, value: Value, expires_at: Timestamp) -> Pending<'_, ()>;
}
