//! The caller, as the API shows them.

use baton_core::{Permission, TenantId, UserId};
use serde::Serialize;
use utoipa::ToSchema;

use crate::identity::roles::PERMISSIONS;
use crate::identity::{AuthenticationMode, Principal};

/// Who is asking, and what they may do.
#[derive(Debug, Serialize, ToSchema)]
pub struct MeView {
    #[schema(value_type = String)]
    pub tenant_id: TenantId,
    #[schema(value_type = String)]
    pub user_id: UserId,
    pub roles: Vec<String>,
    /// Every known permission that the roles allow, and those of `[auth.roles]` that are not known here. An administrator has
    /// all of them and `admin:*`.
    pub permissions: Vec<String>,
    pub auth: AuthView,
}

/// Whether requests need a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AuthView {
    /// Every request from this machine is the local administrator's.
    Open,
    Required,
}

impl MeView {
    pub fn of(caller: &Principal, mode: AuthenticationMode) -> Self {
        Self {
            tenant_id: caller.tenant.clone(),
            user_id: caller.user.clone(),
            roles: caller.roles.clone(),
            permissions: permissions(caller),
            auth: match mode {
                AuthenticationMode::Open => AuthView::Open,
                AuthenticationMode::Required => AuthView::Required,
            },
        }
    }
}

fn permissions(caller: &Principal) -> Vec<String> {
    let known = PERMISSIONS.iter().copied().filter(|permission| caller.may(permission));
    let held = caller.rights.iter().map(Permission::as_str);
    let others = held.filter(|permission| !PERMISSIONS.contains(permission));
    known.chain(others).map(str::to_owned).collect()
}
