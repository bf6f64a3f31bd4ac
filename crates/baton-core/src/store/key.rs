//! API keys. Only the hash of a key is stored.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::id::UserId;
use crate::store::Pending;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiKey {
    pub key_id: Uuid,
    pub user_id: UserId,
    pub roles: Vec<String>,
    /// The first characters of the key, for recognition.
    pub prefix: String,
    pub created_at: Timestamp,
    pub revoked_at: Option<Timestamp>,
}

/// Operations on a tenant's keys. [`super::Store::key`] finds the owner of a hash.
pub trait Keys: Send + Sync {
    fn put_key(&self, key: ApiKey, hash: &str) -> Pending<'_, ()>;

    fn keys(&self) -> Pending<'_, Vec<ApiKey>>;

    fn revoke_key(&self, key: Uuid) -> Pending<'_, ApiKey>;
}
