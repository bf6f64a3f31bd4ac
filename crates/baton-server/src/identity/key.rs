//! API keys: `baton_` and 32 random bytes. Shown once, kept as their hash.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use baton_core::store::ApiKey;
use baton_core::{Permission, UserId};
use data_encoding::HEXLOWER;
use jiff::Timestamp;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

/// How every key begins, so that people and scanners recognise one.
pub const PREFIX: &str = "baton_";
const RANDOM_BYTES: usize = 32;
/// 32 bytes as base64.
const RANDOM_CHARS: usize = 43;
/// What is kept of the key itself: too little to guess the rest from.
const SHOWN_CHARS: usize = PREFIX.len() + 6;

/// A new random key.
#[derive(Debug)]
pub struct NewKey {
    /// For its owner, once.
    pub secret: SecretString,
    pub record: ApiKey,
    pub digest: Digest,
}

/// The system gave no random bytes.
#[derive(Debug, thiserror::Error)]
#[error("the system has no random bytes for a key: {0}")]
pub struct NoRandomness(#[from] getrandom::Error);

/// What a new key is for.
#[derive(Debug, Clone)]
pub struct KeyRequest {
    pub user_id: UserId,
    pub roles: Vec<String>,
    /// What its owner calls it.
    pub name: String,
    /// The permissions that it is limited to; `None` for all of its roles.
    pub scopes: Option<Vec<Permission>>,
    pub expires_at: Option<Timestamp>,
}

impl KeyRequest {
    /// A key without a name, scopes and expiry.
    pub fn new(user_id: UserId, roles: Vec<String>) -> Self {
        Self { user_id, roles, name: String::new(), scopes: None, expires_at: None }
    }
}

/// What the audit trail says about a key: never the key itself.
pub fn audit_detail(key: &ApiKey) -> Value {
    let ApiKey { key_id, user_id, roles, prefix, name, scopes, expires_at, .. } = key;
    let mut detail = json!({ "key_id": key_id, "user_id": user_id, "roles": roles, "prefix": prefix });
    if !name.is_empty() {
        detail["name"] = json!(name);
    }
    if let Some(scopes) = scopes {
        detail["scopes"] = json!(scopes);
    }
    if let Some(expires_at) = expires_at {
        detail["expires_at"] = json!(expires_at);
    }
    detail
}

impl NewKey {
    pub fn create(user_id: UserId, roles: Vec<String>) -> Result<Self, NoRandomness> {
        Self::make(KeyRequest::new(user_id, roles))
    }

    pub fn make(request: KeyRequest) -> Result<Self, NoRandomness> {
        let KeyRequest { user_id, mut roles, name, scopes, expires_at } = request;
        roles.sort();
        roles.dedup();
        let mut bytes = [0; RANDOM_BYTES];
        getrandom::fill(&mut bytes)?;
        let secret = SecretString::from(format!("{PREFIX}{}", BASE64_URL_SAFE_NO_PAD.encode(bytes)));
        let text = secret.expose_secret();
        let record = ApiKey {
            key_id: Uuid::now_v7(),
            user_id,
            name,
            roles,
            scopes,
            prefix: text[..SHOWN_CHARS].to_owned(),
            created_at: Timestamp::now(),
            expires_at,
            last_used_at: None,
            revoked_at: None,
        };
        Ok(Self { digest: Digest::of(text), secret, record })
    }
}

/// SHA-256 of a key. A key is random all over, so nothing slower is needed, and looking one up tells nothing about others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    pub fn of(key: &str) -> Self {
        Self(Sha256::digest(key.as_bytes()).into())
    }

    /// As stores keep it.
    pub fn hex(&self) -> String {
        HEXLOWER.encode(&self.0)
    }
}

/// Whether it can be one of ours. What cannot is not looked for.
pub(super) fn is_key(text: &str) -> bool {
    let is_url_safe = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    text.strip_prefix(PREFIX)
        .is_some_and(|random| random.len() == RANDOM_CHARS && random.bytes().all(is_url_safe))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn create() -> NewKey {
        NewKey::create(UserId::parse("ann").unwrap(), vec!["user".to_owned()]).unwrap()
    }

    #[test]
    fn keys_are_random_and_do_not_print_themselves() {
        let (one, two) = (create(), create());
        let text = one.secret.expose_secret();
        assert!(is_key(text), "{text}");
        assert_ne!(text, two.secret.expose_secret());
        assert!(text.starts_with(&one.record.prefix) && one.record.prefix.len() == 12);
        let printed = format!("{one:?}");
        assert!(!printed.contains(&text[SHOWN_CHARS..]), "{printed}");
        assert_eq!((one.digest.hex().len(), one.digest), (64, Digest::of(text)));
    }

    #[test]
    fn what_cannot_be_a_key_is_not_looked_for() {
        let good = create();
        let good = good.secret.expose_secret();
        for bad in
            ["", "baton_", &good[1..], &good[..48], &format!("{good}x"), &good.replace("baton_", "Baton_")]
        {
            assert!(!is_key(bad), "{bad}");
        }
        assert!(
            !is_key(&format!("baton_{}", "ä".repeat(43))) && !is_key(&format!("baton_{}", "=".repeat(43)))
        );
    }

    #[test]
    fn the_hash_is_plain_sha_256() {
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(Digest::of("abc").hex(), abc);
    }
}
