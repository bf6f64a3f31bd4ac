//! Public keys that tokens are checked with, each for the algorithms of its kind, or the one that the issuer names: which key may check
//! which token is decided here, and never by the token.

use jsonwebtoken::DecodingKey;
use jsonwebtoken::crypto::aws_lc;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, PublicKeyUse};
use serde::Deserialize;
use serde_json::Value;

use super::token::{Algorithm, InvalidTokens};

/// More keys than any issuer has at once.
const MAX_KEYS: usize = 100;
/// Maximum number of keys without a name that are tried, because any client can cause it.
const MAX_TRIED: usize = 10;
/// Uncompressed points of P-256, the curve of ES256, and of P-384, that of ES384.
const P256_BYTES: usize = 65;
const P384_BYTES: usize = 97;
const ED25519_BYTES: usize = 32;
/// 2048 bits: what is shorter can be broken, and is refused by the library too, but without a word.
const LEAST_RSA_BYTES: usize = 256;
const BEGIN: &str = "-----BEGIN ";

#[derive(Debug)]
pub(super) struct PublicKey {
    /// What the issuer calls it. Keys of a file have no name.
    id: Option<String>,
    algorithms: &'static [Algorithm],
    pub(super) key: DecodingKey,
}

#[derive(Debug, Default)]
pub(super) struct KeySet(Vec<PublicKey>);

impl KeySet {
    /// One or more public keys in PEM, one after the other.
    pub(super) fn from_pem(text: &str) -> Result<Self, InvalidTokens> {
        let blocks: Vec<&str> = text.match_indices(BEGIN).map(|(at, _)| &text[at..]).collect();
        if blocks.is_empty() || blocks.len() > MAX_TRIED {
            return Err(InvalidTokens::Pem("it holds no key, or more than ten"));
        }
        blocks.into_iter().map(from_block).collect::<Result<_, _>>().map(Self)
    }

    /// A JSON Web Key Set. Keys that are not for us (to encrypt with, of another kind, or symmetric) are left out.
    pub(super) fn from_json(bytes: &[u8]) -> serde_json::Result<Self> {
        #[derive(Deserialize)]
        struct KeySetDocument {
            keys: Vec<Value>,
        }
        let KeySetDocument { keys } = serde_json::from_slice(bytes)?;
        let keys = keys.into_iter().filter_map(|key| from_jwk(&serde_json::from_value(key).ok()?));
        Ok(Self(keys.take(MAX_KEYS).collect()))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn has(&self, algorithm: Algorithm) -> bool {
        self.0.iter().any(|key| key.algorithms.contains(&algorithm))
    }

    /// The key with this name, for tokens of this algorithm. If it has no name, all keys without one are tried.
    pub(super) fn find<'a>(
        &'a self,
        algorithm: Algorithm,
        id: Option<&'a str>,
    ) -> impl Iterator<Item = &'a PublicKey> {
        let fits = move |key: &&PublicKey| key.id.is_none() || id.is_none() || key.id.as_deref() == id;
        self.0.iter().filter(move |key| key.algorithms.contains(&algorithm)).filter(fits).take(MAX_TRIED)
    }
}

/// The first key of a text that begins with one.
fn from_block(text: &str) -> Result<PublicKey, InvalidTokens> {
    let label = text.lines().next().unwrap_or_default();
    if label.contains("PRIVATE") {
        return Err(InvalidTokens::Pem("it holds a private key, and only the public one belongs here"));
    }
    let invalid = || InvalidTokens::Pem("it holds something else than public RSA, EC or Ed25519 keys");
    if !label.contains("PUBLIC KEY") {
        return Err(invalid());
    }
    let public = |algorithms, key| PublicKey { id: None, algorithms, key };
    if let Ok(key) = DecodingKey::from_ec_pem(text.as_bytes()) {
        let algorithms: &[Algorithm] = match key.try_get_as_bytes().map(<[u8]>::len) {
            Ok(P256_BYTES) => &[Algorithm::Es256],
            Ok(P384_BYTES) => &[Algorithm::Es384],
            _ => return Err(InvalidTokens::Pem("its curve is neither P-256 nor P-384")),
        };
        return Ok(public(algorithms, key));
    }
    if let Ok(key) = DecodingKey::from_ed_pem(text.as_bytes()) {
        let is_ed25519 = key.try_get_as_bytes().is_ok_and(|point| point.len() == ED25519_BYTES);
        return if is_ed25519 { Ok(public(&[Algorithm::EdDsa], key)) } else { Err(invalid()) };
    }
    let key = DecodingKey::from_rsa_pem(text.as_bytes()).map_err(|_| invalid())?;
    let components = aws_lc::DEFAULT_PROVIDER.key_utils.rsa_pub_components_from_public_key;
    let (modulus, _) = key.try_get_as_bytes().and_then(components).map_err(|_| invalid())?;
    if modulus.len() < LEAST_RSA_BYTES {
        return Err(InvalidTokens::Pem("its RSA key has less than 2048 bits"));
    }
    Ok(public(Algorithm::RSA, key))
}

fn from_jwk(jwk: &Jwk) -> Option<PublicKey> {
    if jwk.common.public_key_use.as_ref().is_some_and(|purpose| *purpose != PublicKeyUse::Signature) {
        return None;
    }
    let of_kind: &[Algorithm] = match &jwk.algorithm {
        AlgorithmParameters::RSA(_) => Algorithm::RSA,
        AlgorithmParameters::EllipticCurve(point) => match point.curve {
            EllipticCurve::P256 => &[Algorithm::Es256],
            EllipticCurve::P384 => &[Algorithm::Es384],
            _ => return None,
        },
        AlgorithmParameters::OctetKeyPair(point) if point.curve == EllipticCurve::Ed25519 => {
            &[Algorithm::EdDsa]
        }
        _ => return None,
    };
    let algorithms = match jwk.common.key_algorithm {
        None => of_kind,
        // A slice of the one that is named.
        Some(named) => {
            let at = of_kind.iter().position(|algorithm| algorithm.word() == named.to_string())?;
            &of_kind[at..=at]
        }
    };
    let key = DecodingKey::from_jwk(jwk).ok()?;
    Some(PublicKey { id: jwk.common.key_id.clone(), algorithms, key })
}
