//! Signatures of agent cards: JWS over the canonical JSON (RFC 8785) of the card.
//!
//! A card is signed in the form of one version, without its signatures and without empty members. A card for readers of both versions
//! has a signature for each, because a reader only sees the members of its own version.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
pub use jsonwebtoken::jwk::JwkSet;
use jsonwebtoken::jwk::{Jwk, ThumbprintHash};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, crypto};
use serde_json::{Map, Value, json};

use crate::card::{AgentCard, Signature};
use crate::wire::WireForm;

/// The operator's key.
pub struct CardSigner {
    key: EncodingKey,
    algorithm: Algorithm,
    public: Jwk,
    key_id: String,
}

impl std::fmt::Debug for CardSigner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CardSigner").field("key_id", &self.key_id).finish_non_exhaustive()
    }
}

/// Why a key or a signature cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    #[error("the key is not a private key of Ed25519, ECDSA (P-256, P-384) or RSA in PEM form")]
    Key,
    #[error("the card has no signature")]
    Unsigned,
    #[error("no signature of the card is by a trusted key")]
    Untrusted,
    #[error("the card cannot be signed: {0}")]
    Failed(String),
}

impl CardSigner {
    /// Reads a private key in PEM form. Its id is its thumbprint (RFC 7638).
    pub fn from_pem(pem: &[u8]) -> Result<Self, SignatureError> {
        let candidates = [
            (EncodingKey::from_ed_pem(pem), &[Algorithm::EdDSA][..]),
            (EncodingKey::from_ec_pem(pem), &[Algorithm::ES256, Algorithm::ES384]),
            (EncodingKey::from_rsa_pem(pem), &[Algorithm::RS256]),
        ];
        for (key, algorithms) in candidates {
            let Ok(key) = key else { continue };
            for algorithm in algorithms {
                if let Some(signer) = Self::of(key.clone(), *algorithm) {
                    return Ok(signer);
                }
            }
        }
        Err(SignatureError::Key)
    }

    /// `None` if the key is not one of this algorithm.
    fn of(key: EncodingKey, algorithm: Algorithm) -> Option<Self> {
        let mut public = Jwk::from_encoding_key(&key, algorithm).ok()?;
        let key_id = public.thumbprint(ThumbprintHash::SHA256).ok()?;
        public.common.key_id = Some(key_id.clone());
        let signer = Self { key, algorithm, public, key_id };
        let probe = crypto::sign(b"probe", &signer.key, algorithm).ok()?;
        let public = DecodingKey::from_jwk(&signer.public).ok()?;
        crypto::verify(&probe, b"probe", &public, algorithm).ok().filter(|is_valid| *is_valid)?;
        Some(signer)
    }

    /// The public key, for `jku`.
    pub fn key_set(&self) -> JwkSet {
        JwkSet { keys: vec![self.public.clone()] }
    }

    /// Signs a card in the form of one version. `key_url` is where [`key_set`](Self::key_set) is served.
    pub fn sign(&self, card: &AgentCard, form: WireForm, key_url: &str) -> Result<Signature, SignatureError> {
        let header = json!({ "alg": self.algorithm, "typ": "JOSE", "kid": self.key_id, "jku": key_url });
        let protected = URL_SAFE_NO_PAD.encode(header.to_string());
        let payload = URL_SAFE_NO_PAD.encode(canonical(&form.encode_card(card))?);
        let signature = crypto::sign(format!("{protected}.{payload}").as_bytes(), &self.key, self.algorithm)
            .map_err(|error| SignatureError::Failed(error.to_string()))?;
        Ok(Signature { protected, signature, header: Map::new() })
    }
}

/// Signatures of a card that are looked at.
const MAX_SIGNATURES: usize = 8;

/// Checks the signatures of a card, as it was received. Returns the part of the card that one of the keys has signed: the whole card,
/// or its members of one version. Nothing else of the card may be used.
pub fn verify(card: &Value, keys: &JwkSet) -> Result<Value, SignatureError> {
    let signatures = card["signatures"].as_array().map(Vec::as_slice).unwrap_or_default();
    if signatures.is_empty() {
        return Err(SignatureError::Unsigned);
    }
    let read =
        crate::wire::decode_card(card).map_err(|invalid| SignatureError::Failed(invalid.to_string()))?;
    let unsigned = AgentCard { signatures: Vec::new(), ..read };
    // As it was received, and as a reader of each version understands it.
    let forms = [card.clone(), WireForm::V10.encode_card(&unsigned), WireForm::V03.encode_card(&unsigned)];
    for form in forms {
        let payload = URL_SAFE_NO_PAD.encode(canonical(&form)?);
        let is_valid = |signature: &Value| is_signed(signature, &payload, keys).unwrap_or(false);
        if signatures.iter().take(MAX_SIGNATURES).any(is_valid) {
            return Ok(form);
        }
    }
    Err(SignatureError::Untrusted)
}

fn is_signed(signature: &Value, payload: &str, keys: &JwkSet) -> Option<bool> {
    let (protected, value) = (signature["protected"].as_str()?, signature["signature"].as_str()?);
    let header: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(protected).ok()?).ok()?;
    let algorithm: Algorithm = serde_json::from_value(header["alg"].clone()).ok()?;
    // A secret that both sides know proves nothing about who wrote a card.
    if matches!(algorithm, Algorithm::HS256 | Algorithm::HS384 | Algorithm::HS512) {
        return Some(false);
    }
    let key_id = header["kid"].as_str();
    let candidates =
        keys.keys.iter().filter(|key| key_id.is_none() || key.common.key_id.as_deref() == key_id);
    let message = format!("{protected}.{payload}");
    let mut keys = candidates.filter_map(|key| DecodingKey::from_jwk(key).ok());
    Some(keys.any(|key| crypto::verify(value, message.as_bytes(), &key, algorithm).unwrap_or(false)))
}

/// The canonical bytes of a card, without its signatures.
fn canonical(card: &Value) -> Result<Vec<u8>, SignatureError> {
    let mut card = card.clone();
    if let Some(members) = card.as_object_mut() {
        members.shift_remove("signatures");
    }
    serde_json_canonicalizer::to_vec(&without_empty(card))
        .map_err(|error| SignatureError::Failed(error.to_string()))
}

/// Removes empty texts, lists and objects, as the protocol demands it for members that are not set.
fn without_empty(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let members = members.into_iter().map(|(name, value)| (name, without_empty(value)));
            Value::Object(members.filter(|(_, value)| !is_empty(value)).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without_empty).collect()),
        other => other,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests;
