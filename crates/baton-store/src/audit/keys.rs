//! Keys that sign the audit trail: seals, the ends of chains, and checkpoints.
//!
//! The hash chains alone show a change only unless they are recomputed. The keys are not in the store, so a signed seal cannot
//! be recomputed by someone who can write to the database.

use std::fmt;

use data_encoding::HEXLOWER;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};

use super::chain::Hash;

/// Shorter keys can be guessed.
const MIN_BYTES: usize = 32;
/// Bytes of a key's id.
const ID_BYTES: usize = 8;

/// The keys of a store. The first one signs; the others only verify, for what was signed before a rotation. Without any key,
/// signatures are plain SHA-256.
#[derive(Clone, Default)]
pub struct AuditKeys(Vec<AuditKey>);

#[derive(Clone)]
struct AuditKey {
    id: String,
    mac: Hmac<Sha256>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a key of the audit trail needs at least {MIN_BYTES} characters, such as the output of `openssl rand -hex 32`"
)]
pub struct InvalidAuditKey;

/// Whether a signature can be relied on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trust {
    /// It was made with a configured key; without any key, it is a correct hash.
    Trusted,
    /// It was made with a key that is not configured, or without one although one is configured.
    Untrusted,
    /// It is not the signature of this content.
    Wrong,
}

impl AuditKeys {
    /// Reads keys separated by white space. The first one signs.
    pub fn parse(text: &str) -> Result<Self, InvalidAuditKey> {
        text.split_whitespace().map(AuditKey::new).collect::<Result<_, _>>().map(Self)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The id of the key that signs; empty without a key.
    pub fn signing_id(&self) -> &str {
        self.0.first().map_or("", |key| &key.id)
    }

    /// Signs with the first key.
    pub(super) fn sign(&self, kind: u8, parts: &[&[u8]]) -> Hash {
        digest(self.0.first(), kind, parts)
    }

    /// Checks a signature that the key `id` made.
    pub(super) fn check(&self, id: &str, kind: u8, parts: &[&[u8]], signature: &[u8]) -> Trust {
        let key = self.0.iter().find(|key| key.id == id);
        if key.is_none() && !id.is_empty() {
            return Trust::Untrusted;
        }
        match digest(key, kind, parts) == *signature {
            false => Trust::Wrong,
            true if key.is_some() || self.is_empty() => Trust::Trusted,
            true => Trust::Untrusted,
        }
    }
}

impl AuditKey {
    fn new(text: &str) -> Result<Self, InvalidAuditKey> {
        if text.len() < MIN_BYTES {
            return Err(InvalidAuditKey);
        }
        let mac = Hmac::<Sha256>::new_from_slice(text.as_bytes()).map_err(|_| InvalidAuditKey)?;
        let id = mac.clone().chain_update(b"baton audit key").finalize().into_bytes();
        Ok(Self { id: HEXLOWER.encode(&id[..ID_BYTES]), mac })
    }
}

/// HMAC-SHA-256, or SHA-256 without a key, over a tag byte and parts of fixed length or with a length prefix.
fn digest(key: Option<&AuditKey>, kind: u8, parts: &[&[u8]]) -> Hash {
    match key {
        Some(key) => {
            let mut mac = key.mac.clone();
            mac.update(&[kind]);
            for part in parts {
                mac.update(part);
            }
            mac.finalize().into_bytes().into()
        }
        None => {
            let mut hash = Sha256::new_with_prefix([kind]);
            for part in parts {
                hash.update(part);
            }
            hash.finalize().into()
        }
    }
}

impl fmt::Debug for AuditKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|key| &key.id)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "one key of at least thirty-two characters";
    const TWO: &str = "another-key-of-at-least-thirty-two-characters";

    fn keys(text: &str) -> AuditKeys {
        AuditKeys::parse(&text.replace(' ', "-")).unwrap()
    }

    #[test]
    fn keys_are_read_and_do_not_print_themselves() {
        assert!(AuditKeys::parse(" \n").unwrap().is_empty());
        assert_eq!(AuditKeys::parse("short").unwrap_err(), InvalidAuditKey);
        let keys = AuditKeys::parse(&format!("{TWO}\n{}\n", ONE.replace(' ', "-"))).unwrap();
        assert_eq!(keys.signing_id().len(), 2 * ID_BYTES);
        assert!(!format!("{keys:?}").contains("another"), "{keys:?}");
    }

    /// RFC 4231, test case 2.
    #[test]
    fn signatures_are_those_of_hmac() {
        let key = AuditKey { id: String::new(), mac: Hmac::new_from_slice(b"Jefe").unwrap() };
        let signed = digest(Some(&key), b'w', &[b"hat do ya want ", b"for nothing?"]);
        assert_eq!(
            HEXLOWER.encode(&signed),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
    }

    #[test]
    fn only_configured_keys_are_trusted() {
        let (one, two, none) = (keys(ONE), keys(TWO), AuditKeys::default());
        let both = keys(&format!("{}\n{TWO}", ONE.replace(' ', "-")));
        let parts: &[&[u8]] = &[b"content"];
        let signed = |keys: &AuditKeys| (keys.signing_id().to_owned(), keys.sign(b'r', parts));
        let check =
            |keys: &AuditKeys, (id, signature): &(String, Hash)| keys.check(id, b'r', parts, signature);
        assert_eq!(check(&one, &signed(&one)), Trust::Trusted);
        assert_eq!(check(&both, &signed(&two)), Trust::Trusted, "after a rotation");
        assert_eq!(check(&two, &signed(&one)), Trust::Untrusted);
        assert_eq!(check(&none, &signed(&one)), Trust::Untrusted);
        assert_eq!(check(&none, &signed(&none)), Trust::Trusted, "no key is configured");
        assert_eq!(check(&one, &signed(&none)), Trust::Untrusted, "hashes that anyone can compute");
        assert_eq!(check(&one, &(one.signing_id().to_owned(), signed(&two).1)), Trust::Wrong);
        assert_eq!(check(&one, &(String::new(), signed(&one).1)), Trust::Wrong);
    }
}
