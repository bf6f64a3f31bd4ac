//! Authentication. Only the credential determines tenant, user and roles, never a body or another header.
//!
//! [`credential`] extracts the credential of a request. [`attempts`] limits failures per address. API keys ([`key`]) are looked up through the [`keyring`]; tokens
//! ([`token`]) are verified with keys ([`keyset`]) that are configured or published ([`jwks`]). [`roles`] maps roles to
//! permissions, [`refusal`] lists the errors.

mod attempts;
mod credential;
mod generations;
pub mod jwks;
pub mod key;
mod key_uses;
mod keyring;
mod keyset;
pub mod refusal;
pub mod roles;
pub mod token;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Instant;

use axum::extract::FromRequestParts;
use baton_core::{Permission, Rights, Store, TenantId, UserId};
use http::HeaderMap;
use http::request::Parts;
use jiff::Timestamp;
use uuid::Uuid;

use self::attempts::AttemptLimits;
use self::credential::Credential;
use self::key::Digest;
use self::key_uses::KeyUses;
use self::keyring::Keyring;
use self::refusal::AuthRefusal;
use self::roles::Roles;
use self::token::TokenVerifier;
use crate::client_address::{AddressKey, ClientAddress};
use crate::problem::{ApiResult, Problem};

#[derive(Debug, Clone, Default)]
pub struct AuthSettings {
    pub mode: AuthenticationMode,
    /// Additional roles, and overrides of the built-in ones.
    pub roles: BTreeMap<String, Vec<Permission>>,
    /// Accepted besides API keys.
    pub tokens: Option<Arc<TokenVerifier>>,
    /// Tenants whose users may hold permissions that reach beyond a tenant ([`roles::INSTALLATION`]).
    pub operators: Vec<TenantId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AuthenticationMode {
    /// Every caller is the local administrator. Loopback only.
    #[default]
    Open,
    Required,
}

/// An authenticated caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    pub tenant: TenantId,
    pub user: UserId,
    pub roles: Vec<String>,
    pub rights: Rights,
    /// For long-lived connections such as streams.
    pub valid: Valid,
    /// Whether the tenant operates the installation.
    pub is_operator: bool,
    /// The API key that the caller has used.
    pub key: Option<UsedKey>,
}

/// The API key of a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsedKey {
    pub key_id: Uuid,
    pub expires_at: Option<Timestamp>,
}

/// How long an authentication is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Valid {
    Always,
    /// Until the key is revoked.
    UnlessRevoked(Digest),
    /// Until the token expires.
    Until(Timestamp),
}

impl Principal {
    /// The caller in open mode.
    pub fn local() -> Self {
        Self {
            tenant: TenantId::parse("default").expect("a valid name"),
            user: UserId::parse("local").expect("a valid name"),
            roles: vec![roles::ADMIN.to_owned()],
            rights: Rights::all(),
            valid: Valid::Always,
            is_operator: true,
            key: None,
        }
    }

    /// Whether the caller has a permission. One that reaches beyond a tenant is granted to operators of the installation only.
    pub fn may(&self, permission: &str) -> bool {
        (self.is_operator || !roles::INSTALLATION.contains(&permission)) && self.rights.allow(permission)
    }

    pub fn demand(&self, permission: &str) -> ApiResult<()> {
        if self.may(permission) { Ok(()) } else { Err(Problem::permission(permission)) }
    }

    /// When the caller's key stops working; `None` if it does not expire, or if the caller has a token. A token is a session of a
    /// person, who may have longer than the session.
    pub fn key_expires_at(&self) -> Option<Timestamp> {
        self.key.and_then(|key| key.expires_at)
    }

    /// Whether the caller may read other users' threads of the same tenant.
    pub fn sees_all(&self) -> bool {
        self.may(roles::TRACE_READ)
    }

    /// The user whose threads the caller may read; `None` for all users.
    pub fn scope(&self) -> Option<&UserId> {
        if self.sees_all() { None } else { Some(&self.user) }
    }
}

/// Turns credentials into principals.
#[derive(Debug)]
pub struct Authenticator {
    mode: AuthenticationMode,
    /// The caller in open mode.
    local: Arc<Principal>,
    roles: Arc<Roles>,
    keyring: Keyring,
    attempts: Arc<AttemptLimits>,
    uses: KeyUses,
    tokens: Option<Arc<TokenVerifier>>,
}

impl Authenticator {
    pub fn new(settings: &AuthSettings, store: Arc<dyn Store>) -> Self {
        let roles = Arc::new(Roles::new(&settings.roles).operated_by(&settings.operators));
        let attempts = Arc::new(AttemptLimits::new(Instant::now()));
        Self {
            mode: settings.mode,
            local: Arc::new(Principal::local()),
            keyring: Keyring::new(store, Arc::clone(&roles), Arc::clone(&attempts)),
            attempts,
            roles,
            uses: KeyUses::default(),
            tokens: settings.tokens.clone(),
        }
    }

    pub fn roles(&self) -> &Roles {
        &self.roles
    }

    /// When keys were last used, since the last call.
    pub fn take_key_uses(&self) -> HashMap<TenantId, Vec<(Uuid, Timestamp)>> {
        self.uses.take()
    }

    /// Failures are limited per address. Keys that were good before are not affected by them; tokens are.
    pub async fn authenticate(
        &self,
        headers: &HeaderMap,
        from: ClientAddress,
    ) -> Result<Arc<Principal>, AuthRefusal> {
        match self.mode {
            AuthenticationMode::Open => Ok(Arc::clone(&self.local)),
            AuthenticationMode::Required => self.identify(headers, from.into()).await,
        }
    }

    async fn identify(&self, headers: &HeaderMap, from: AddressKey) -> Result<Arc<Principal>, AuthRefusal> {
        let count = |refusal| self.count(refusal, from);
        match credential::of(headers).map_err(count)? {
            Credential::Key(key) => {
                let owner = self.keyring.owner(Digest::of(key), Some(from)).await?;
                self.uses.note(&owner);
                Ok(owner)
            }
            Credential::Token(token) => self.verify_counted(token, from).await,
        }
    }

    /// Counts a failed authentication without a key or token.
    fn count(&self, refusal: AuthRefusal, from: AddressKey) -> AuthRefusal {
        let is_failed = matches!(refusal, AuthRefusal::Invalid(_) | AuthRefusal::Expired);
        if is_failed && !self.attempts.take(from, Instant::now()) { AuthRefusal::Busy } else { refusal }
    }

    /// A token counts as a failed authentication of `from` until it is verified, so that an address over its limit costs no checks of
    /// signatures.
    async fn verify_counted(&self, token: &str, from: AddressKey) -> Result<Arc<Principal>, AuthRefusal> {
        if !self.attempts.take(from, Instant::now()) {
            return Err(AuthRefusal::Busy);
        }
        let verified = self.verify(token).await;
        if !matches!(verified, Err(AuthRefusal::Invalid(_) | AuthRefusal::Expired)) {
            self.attempts.give_back(from);
        }
        verified
    }

    async fn verify(&self, token: &str) -> Result<Arc<Principal>, AuthRefusal> {
        let tokens = self.tokens.as_ref().ok_or(AuthRefusal::Invalid("tokens are not accepted"))?;
        let claims = tokens.verify(token).await?;
        let valid = Valid::Until(claims.end());
        let token::Claims { user, tenant, roles, .. } = claims;
        let (rights, is_operator) = (self.roles.rights(&roles), self.roles.is_operator(&tenant));
        Ok(Arc::new(Principal { tenant, user, roles, rights, valid, is_operator, key: None }))
    }

    /// Whether an earlier authentication is still valid. Cheap enough for every heartbeat of every stream.
    pub async fn is_still(&self, principal: &Principal) -> bool {
        match principal.valid {
            Valid::Always => true,
            Valid::Until(end) => Timestamp::now() < end,
            // If the store is unavailable, the authentication stays valid.
            Valid::UnlessRevoked(digest) => {
                !matches!(self.keyring.owner(digest, None).await, Err(AuthRefusal::Invalid(_)))
            }
        }
    }
}

/// The principal of a request. Set by the access layer on all routes except public ones.
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
