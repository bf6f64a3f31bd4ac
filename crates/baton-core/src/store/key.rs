//! API keys. Only the hash of a key is stored.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::id::UserId;
use crate::permission::Permission;
use crate::store::Pending;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiKey {
    pub key_id: Uuid,
    pub user_id: UserId,
    /// What its owner calls it. May be empty.
    #[serde(default)]
    pub name: String,
    pub roles: Vec<String>,
    /// The permissions that the key is limited to, out of those of its roles; `None` for all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Vec<Permission>>,
    /// The first characters of the key, for recognition.
    pub prefix: String,
    pub created_at: Timestamp,
    /// The key is refused from this time on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// When the key was last used, exact to about a minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
}

/// Operations on a tenant's keys. [`super::Store::key`] finds the owner of a hash.
pub trait Keys: Send + Sync {
    fn put_key(&self, key: ApiKey, hash: &str) -> Pending<'_, ()>;

    fn keys(&self) -> Pending<'_, Vec<ApiKey>>;

    fn revoke_key(&self, key: Uuid) -> Pending<'_, ApiKey>;

    /// Records when keys were last used. Keys that do not exist are ignored; an earlier time than the stored one changes nothing.
    fn touch_keys(&self, used: Vec<(Uuid, Timestamp)>) -> Pending<'_, ()>;
}
