//! API keys, as the API shows them.

use baton_core::store::ApiKey;
use baton_core::{Permission, UserId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::schema::moment;
use super::text::ShortText;
use crate::strict::Checked;

/// Which keys are wanted.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct KeyParams {
    /// Only keys of this user.
    #[param(value_type = Option<String>)]
    pub user_id: Option<UserId>,
}

/// A new key.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(examples(json!({ "name": "nightly export", "user_id": "ada", "roles": ["user"], "scopes": ["thread:read"] })))]
pub struct NewKeyBody {
    /// What the key is for, so that people recognise it in the list.
    #[schema(value_type = String, min_length = 1, max_length = 200)]
    pub name: ShortText,
    /// The user that requests with the key act for. The caller, if it is left out.
    #[schema(value_type = Option<String>, nullable = false, min_length = 1, max_length = 255)]
    pub user_id: Option<UserId>,
    /// Roles, such as `user`.
    #[schema(min_items = 1, max_items = 20)]
    pub roles: Vec<String>,
    /// The permissions that the key is limited to, each granted by the roles. All of the roles, if it is left out.
    #[schema(value_type = Option<Vec<String>>, nullable = false, max_items = 50)]
    pub scopes: Option<Vec<Permission>>,
    /// When the key stops working. If it is left out: with the credential of the request, or never.
    #[schema(schema_with = moment, required = false)]
    pub expires_at: Option<Timestamp>,
}

impl Checked for NewKeyBody {}

/// Whether a key works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum KeyStatus {
    Active,
    Expired,
    Revoked,
}

/// A key, without what makes it work.
#[derive(Debug, Serialize, ToSchema)]
pub struct KeyView {
    pub key_id: Uuid,
    pub name: String,
    #[schema(value_type = String)]
    pub user_id: UserId,
    pub roles: Vec<String>,
    /// The permissions that it is limited to; absent for all of its roles.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<String>>, nullable = false)]
    pub scopes: Option<Vec<Permission>>,
    /// The first characters of the key.
    pub prefix: String,
    pub status: KeyStatus,
    #[schema(schema_with = moment)]
    pub created_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = moment, required = false)]
    pub expires_at: Option<Timestamp>,
    /// Exact to about a minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = moment, required = false)]
    pub last_used_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = moment, required = false)]
    pub revoked_at: Option<Timestamp>,
}

impl KeyView {
    pub fn of(key: ApiKey, now: Timestamp) -> Self {
        let status = match (key.revoked_at, key.expires_at) {
            (Some(_), _) => KeyStatus::Revoked,
            (None, Some(end)) if end <= now => KeyStatus::Expired,
            _ => KeyStatus::Active,
        };
        let ApiKey {
            key_id,
            user_id,
            name,
            roles,
            scopes,
            prefix,
            created_at,
            expires_at,
            last_used_at,
            revoked_at,
        } = key;
        Self {
            key_id,
            name,
            user_id,
            roles,
            scopes,
            prefix,
            status,
            created_at,
            expires_at,
            last_used_at,
            revoked_at,
        }
    }
}

/// A key that was just created.
#[derive(Debug, Serialize, ToSchema)]
pub struct CreatedKey {
    #[serde(flatten)]
    pub view: KeyView,
    /// The key itself. It is not shown again.
    pub key: String,
}
