//! Who is asking. The credential alone decides tenant, user and roles; a body or another header never does.
//!
//! [`credential`] reads what a request shows. API keys ([`key`]) are looked up through the [`keyring`]; tokens ([`token`]) are
//! checked with keys ([`keyset`]) that are configured or published ([`jwks`]). [`roles`] says what somebody may do, [`refusal`] why
//! they are not let in, and [`local`] who is let in where nobody has to show anything.

mod credential;
pub mod jwks;
pub mod key;
mod keyring;
mod keyset;
pub mod refusal;
pub mod roles;
pub mod token;

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use baton_core::{Permission, Rights, Store, TenantId, UserId};
use http::HeaderMap;
use http::request::Parts;
use jiff::Timestamp;

use self::credential::Credential;
use self::key::Digest;
use self::keyring::Keyring;
use self::refusal::Refusal;
use self::roles::Roles;
use self::token::Tokens;
use crate::problem::{Answer, Problem};

#[derive(Debug, Clone, Default)]
pub struct Settings {
    pub mode: Mode,
    /// Roles that are added, or that mean something else than usual.
    pub roles: BTreeMap<String, Vec<Permission>>,
    /// Accepted beside API keys.
    pub tokens: Option<Arc<Tokens>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Everybody is the local administrator. Only on loopback.
    #[default]
    Open,
    Required,
}

/// Somebody whose credential was accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    pub tenant: TenantId,
    pub user: UserId,
    pub roles: Vec<String>,
    pub rights: Rights,
    /// For those who stay long, as listeners do.
    pub valid: Valid,
}

/// How long somebody who was let in may stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Valid {
    Always,
    /// Their key can be revoked.
    UnlessRevoked(Digest),
    /// Their token ends.
    Until(Timestamp),
}

impl Principal {
    /// Whoever asks in open mode.
    pub fn local() -> Self {
        Self {
            tenant: TenantId::parse("default").expect("a valid name"),
            user: UserId::parse("local").expect("a valid name"),
            roles: vec![roles::ADMIN.to_owned()],
            rights: Rights::all(),
            valid: Valid::Always,
        }
    }

    pub fn may(&self, permission: &str) -> bool {
        self.rights.allow(permission)
    }

    pub fn demand(&self, permission: &str) -> Answer<()> {
        if self.may(permission) { Ok(()) } else { Err(Problem::permission(permission)) }
    }

    /// Whether other users' threads of the same tenant are theirs to look at.
    pub fn sees_all(&self) -> bool {
        self.may(roles::TRACE_READ)
    }

    /// Whose threads they can see: `None` for everybody's.
    pub fn scope(&self) -> Option<&UserId> {
        if self.sees_all() { None } else { Some(&self.user) }
    }
}

/// Credentials become principals here.
#[derive(Debug)]
pub struct Identity {
    mode: Mode,
    roles: Arc<Roles>,
    keyring: Keyring,
    tokens: Option<Arc<Tokens>>,
}

impl Identity {
    pub fn new(settings: &Settings, store: Arc<dyn Store>) -> Self {
        let roles = Arc::new(Roles::new(&settings.roles));
        Self {
            mode: settings.mode,
            keyring: Keyring::new(store, Arc::clone(&roles)),
            roles,
            tokens: settings.tokens.clone(),
        }
    }

    pub async fn authenticate(&self, headers: &HeaderMap) -> Answer<Principal> {
        match self.mode {
            Mode::Open => Ok(Principal::local()),
            Mode::Required => Ok(self.identify(headers).await?),
        }
    }

    async fn identify(&self, headers: &HeaderMap) -> Result<Principal, Refusal> {
        match credential::of(headers)? {
            Credential::Key(key) => {
                let owner = self.keyring.owner(Digest::of(key)).await?;
                Ok(Arc::unwrap_or_clone(owner))
            }
            Credential::Token(token) => {
                let tokens = self.tokens.as_ref().ok_or(Refusal::Invalid("tokens are not accepted"))?;
                let claims = tokens.verify(token).await?;
                let valid = Valid::Until(claims.end());
                let token::Claims { sub, tenant_id, roles, .. } = claims;
                let rights = self.roles.rights(&roles);
                Ok(Principal { tenant: tenant_id, user: sub, roles, rights, valid })
            }
        }
    }

    /// Whether somebody who was let in some time ago still would be. Cheap enough for every beat of every stream.
    pub async fn is_still(&self, principal: &Principal) -> bool {
        match principal.valid {
            Valid::Always => true,
            Valid::Until(end) => Timestamp::now() < end,
            // A store that does not answer at the moment throws nobody out.
            Valid::UnlessRevoked(digest) => {
                !matches!(self.keyring.owner(digest).await, Err(Refusal::Invalid(_)))
            }
        }
    }
}

/// The principal of a request. There is always one behind the access layer, except on public routes.
#[derive(Debug, Clone)]
pub struct Caller(pub Arc<Principal>);

impl std::ops::Deref for Caller {
    type Target = Principal;
    fn deref(&self) -> &Principal {
        &self.0
    }
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let found = parts.extensions.get::<Self>().cloned();
        found.ok_or_else(|| Problem::internal(&"a route that needs a caller is public"))
    }
}
