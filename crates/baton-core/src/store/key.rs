//! API keys. The key itself is never kept, only its hash.

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
    /// The beginning, so that people recognise it.
    pub prefix: String,
    pub created_at: Timestamp,
    pub revoked_at: Option<Timestamp>,
}

/// What can be done with a tenant's keys. Whose key a hash is, [`super::Store::key`] says.
pub trait Keys: Send + Sync {
    fn put_key(&self, key: ApiKey, hash: &str) -> Pending<'_, ()>;

    fn keys(&self) -> Pending<'_, Vec<ApiKey>>;

    fn revoke_key(&self, key: Uuid) -> Pending<'_, ApiKey>;
}
