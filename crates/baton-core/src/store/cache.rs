//! Cached results with an expiry time.

use jiff::Timestamp;
use serde_json::Value;

use crate::store::Pending;

pub trait Cache: Send + Sync {
    /// `None` if there is no result or it has expired.
    fn cached(&self, key: &str) -> Pending<'_, Option<Value>>;

    fn keep(&self, key: &str, value: Value, expires_at: Timestamp) -> Pending<'_, ()>;
}
