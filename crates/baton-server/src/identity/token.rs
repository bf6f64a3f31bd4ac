//! Tokens of an issuer that the operator trusts (JWT).

use std::fmt;
use std::sync::Arc;

use baton_core::{TenantId, UserId};
use jiff::Timestamp;
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{DecodingKey, Validation};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;

use super::jwks::{self, Jwks};
use super::keyset::KeySet;
use super::refusal::AuthRefusal;

/// How far the clocks of issuer and server may be apart.
const LEEWAY_SECONDS: u64 = 30;
/// HS256 is as strong as its secret, and needs one as long as its hash.
const LEAST_SECRET_BYTES: usize = 32;

/// How tokens may be signed. `none` is not among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum Algorithm {
    #[serde(rename = "HS256")]
    Hs256,
    #[serde(rename = "RS256")]
    Rs256,
    #[serde(rename = "ES256")]
    Es256,
}

impl Algorithm {
    pub const ALL: &[Self] = &[Self::Hs256, Self::Rs256, Self::Es256];

    /// As headers of tokens and people write it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Hs256 => "HS256",
            Self::Rs256 => "RS256",
            Self::Es256 => "ES256",
        }
    }

    fn native(self) -> jsonwebtoken::Algorithm {
        match self {
            Self::Hs256 => jsonwebtoken::Algorithm::HS256,
            Self::Rs256 => jsonwebtoken::Algorithm::RS256,
            Self::Es256 => jsonwebtoken::Algorithm::ES256,
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// Whose tokens are accepted, and how they are checked.
#[derive(Debug)]
pub struct TokenTrust {
    pub issuer: String,
    pub audience: String,
    pub algorithms: Vec<Algorithm>,
    /// For HS256.
    pub secret: Option<SecretString>,
    /// For RS256 and ES256.
    pub keys: Option<KeySource>,
}

#[derive(Debug)]
pub enum KeySource {
    /// Public keys in PEM.
    Pem(String),
    /// Where the issuer publishes its keys.
    Jwks(jwks::JwksSettings),
}

/// Why tokens could not be checked.
#[derive(Debug, thiserror::Error)]
pub enum InvalidTokens {
    #[error("tokens have an issuer, an audience and an algorithm: none of them may be empty")]
    Empty,
    #[error("HS256 needs a secret")]
    NoSecret,
    #[error("the secret for HS256 needs {LEAST_SECRET_BYTES} bytes at least")]
    ShortSecret,
    #[error("RS256 and ES256 need public keys")]
    NoKeys,
    #[error("the file of public keys is not usable: {0}")]
    Pem(&'static str),
    #[error("there is no public key for {0} in the file")]
    NoKeyFor(Algorithm),
    #[error("`{0}` is not usable: keys are fetched over https, or from this machine, and without a password")]
    Url(String),
    #[error("cannot set up the HTTP client: {0}")]
    Client(#[from] reqwest::Error),
}

#[derive(Debug)]
pub struct TokenVerifier {
    issuer: String,
    audience: String,
    algorithms: Vec<Algorithm>,
    secret: Option<DecodingKey>,
    keys: Option<TokenKeys>,
}

#[derive(Debug)]
enum TokenKeys {
    Fixed(Arc<KeySet>),
    Fetched(Jwks),
}

/// The claims of a token.
#[derive(Debug, Deserialize)]
pub(super) struct Claims {
    pub(super) sub: UserId,
    pub(super) tenant_id: TenantId,
    #[serde(default)]
    pub(super) roles: Vec<String>,
    /// The library would also accept a list, among which is the right one.
    #[serde(rename = "iss")]
    _issuer: String,
    /// In seconds, and some write fractions of them.
    exp: f64,
}

impl Claims {
    /// When it is refused.
    pub(super) fn end(&self) -> Timestamp {
        #[expect(clippy::cast_possible_truncation, reason = "what is out of bounds is as far as can be")]
        let seconds = (self.exp as i64).saturating_add_unsigned(LEEWAY_SECONDS);
        Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX)
    }
}

impl TokenVerifier {
    pub fn new(trust: TokenTrust) -> Result<Self, InvalidTokens> {
        // Fails only when it was done before.
        let _ = jsonwebtoken::crypto::aws_lc::DEFAULT_PROVIDER.install_default();
        let TokenTrust { issuer, audience, algorithms, secret, keys } = trust;
        if issuer.is_empty() || audience.is_empty() || algorithms.is_empty() {
            return Err(InvalidTokens::Empty);
        }
        let is_symmetric = |algorithm: &&Algorithm| **algorithm == Algorithm::Hs256;
        let secret =
            algorithms.iter().find(is_symmetric).map(|_| checked_secret(secret.as_ref())).transpose()?;
        let public: Vec<Algorithm> =
            algorithms.iter().copied().filter(|algorithm| !is_symmetric(&algorithm)).collect();
        let keys = if public.is_empty() { None } else { Some(checked_keys(keys, &public)?) };
        Ok(Self { issuer, audience, algorithms, secret, keys })
    }

    pub(super) async fn verify(&self, token: &str) -> Result<Claims, AuthRefusal> {
        let header = jsonwebtoken::decode_header(token)
            .map_err(|_| AuthRefusal::Invalid("its header cannot be read"))?;
        if header.crit.is_some() {
            // An unknown critical extension has to be refused (RFC 7515), and none is known here.
            return Err(AuthRefusal::Invalid("it demands an extension"));
        }
        let allowed = self.algorithms.iter().find(|allowed| allowed.native() == header.alg);
        let algorithm = *allowed.ok_or(AuthRefusal::Invalid("its algorithm is not allowed"))?;
        let id = header.kid.as_deref();
        match (algorithm, &self.keys) {
            (Algorithm::Hs256, _) => self.decode(token, algorithm, self.secret.iter()),
            (_, Some(TokenKeys::Fixed(set))) => self.decode_with(token, algorithm, None, set),
            (_, Some(TokenKeys::Fetched(jwks))) => {
                let set = jwks.keys_for(algorithm, id).await?;
                self.decode_with(token, algorithm, id, &set)
            }
            (_, None) => Err(AuthRefusal::Invalid("there is no key for its algorithm")),
        }
    }

    fn decode_with(
        &self,
        token: &str,
        algorithm: Algorithm,
        id: Option<&str>,
        set: &KeySet,
    ) -> Result<Claims, AuthRefusal> {
        self.decode(token, algorithm, set.find(algorithm, id).map(|public| &public.key))
    }

    /// Claims are read only after the signature was verified, so that a forged token reveals nothing.
    fn decode<'a>(
        &self,
        token: &str,
        algorithm: Algorithm,
        keys: impl Iterator<Item = &'a DecodingKey>,
    ) -> Result<Claims, AuthRefusal> {
        let validation = self.validation(algorithm);
        let mut refusal = AuthRefusal::Invalid("it was signed with an unknown key");
        for key in keys {
            match jsonwebtoken::decode(token, key, &validation) {
                Ok(decoded) => return Ok(decoded.claims),
                Err(error) if *error.kind() == ErrorKind::InvalidSignature => {
                    refusal = AuthRefusal::Invalid("its signature is wrong");
                }
                Err(error) => return Err(refused(error.kind())),
            }
        }
        Err(refusal)
    }

    /// One algorithm: the one that the key is for.
    fn validation(&self, algorithm: Algorithm) -> Validation {
        let mut validation = Validation::new(algorithm.native());
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        validation.set_issuer(&[&self.issuer]);
        validation.set_audience(&[&self.audience]);
        validation.validate_nbf = true;
        validation.leeway = LEEWAY_SECONDS;
        validation
    }
}

fn refused(kind: &ErrorKind) -> AuthRefusal {
    match kind {
        ErrorKind::ExpiredSignature => AuthRefusal::Expired,
        ErrorKind::ImmatureSignature => AuthRefusal::Invalid("it is not valid yet"),
        ErrorKind::InvalidIssuer => AuthRefusal::Invalid("it has another issuer"),
        ErrorKind::InvalidAudience => AuthRefusal::Invalid("it is for another audience"),
        _ => AuthRefusal::Invalid("its claims are missing or malformed"),
    }
}

fn checked_secret(secret: Option<&SecretString>) -> Result<DecodingKey, InvalidTokens> {
    let secret = secret.ok_or(InvalidTokens::NoSecret)?.expose_secret().as_bytes();
    if secret.len() < LEAST_SECRET_BYTES {
        return Err(InvalidTokens::ShortSecret);
    }
    Ok(DecodingKey::from_secret(secret))
}

fn checked_keys(source: Option<KeySource>, algorithms: &[Algorithm]) -> Result<TokenKeys, InvalidTokens> {
    match source.ok_or(InvalidTokens::NoKeys)? {
        KeySource::Jwks(settings) => Jwks::new(settings).map(TokenKeys::Fetched),
        KeySource::Pem(text) => {
            let set = KeySet::from_pem(&text)?;
            match algorithms.iter().find(|algorithm| !set.has(**algorithm)) {
                Some(missing) => Err(InvalidTokens::NoKeyFor(*missing)),
                None => Ok(TokenKeys::Fixed(Arc::new(set))),
            }
        }
    }
}
