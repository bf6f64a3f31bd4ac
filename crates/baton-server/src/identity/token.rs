//! Tokens of an issuer that the operator trusts (JWT).

use std::fmt;
use std::sync::Arc;

use baton_core::{TenantId, UserId};
use jiff::Timestamp;
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{DecodingKey, Validation};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde_json::Value;

use super::jwks::{self, Jwks};
use super::keyset::KeySet;
use super::refusal::AuthRefusal;
use crate::trail::SYSTEM_TENANT;

/// How far the clocks of issuer and server may be apart.
const LEEWAY_SECONDS: u64 = 30;
/// HS256 is as strong as its secret, and needs one as long as its hash.
const LEAST_SECRET_BYTES: usize = 32;

/// How tokens may be signed. `none` is not among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    Hs256,
    Rs256,
    Rs384,
    Rs512,
    Ps256,
    Ps384,
    Ps512,
    Es256,
    Es384,
    EdDsa,
}

/// The library that verifies tokens does not know it.
const UNSUPPORTED: &str = "ES512";
const WORDS: &[&str] =
    &["HS256", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"];

impl<'de> Deserialize<'de> for Algorithm {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error as _;
        let word = String::deserialize(deserializer)?;
        if word == UNSUPPORTED {
            return Err(D::Error::custom(
                "ES512 is not supported: the library that verifies tokens has no signatures of the curve P-521; let the issuer \
                 sign with ES256, ES384, EdDSA, PS512 or RS512",
            ));
        }
        let known = Self::ALL.iter().copied().find(|algorithm| algorithm.word() == word);
        known.ok_or_else(|| D::Error::unknown_variant(&word, WORDS))
    }
}

impl Algorithm {
    pub const ALL: &[Self] = &[
        Self::Hs256,
        Self::Rs256,
        Self::Rs384,
        Self::Rs512,
        Self::Ps256,
        Self::Ps384,
        Self::Ps512,
        Self::Es256,
        Self::Es384,
        Self::EdDsa,
    ];
    /// Those of an RSA key.
    pub(super) const RSA: &[Self] =
        &[Self::Rs256, Self::Rs384, Self::Rs512, Self::Ps256, Self::Ps384, Self::Ps512];

    /// As headers of tokens and people write it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Hs256 => "HS256",
            Self::Rs256 => "RS256",
            Self::Rs384 => "RS384",
            Self::Rs512 => "RS512",
            Self::Ps256 => "PS256",
            Self::Ps384 => "PS384",
            Self::Ps512 => "PS512",
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::EdDsa => "EdDSA",
        }
    }

    /// Whether it uses a secret that both sides know, and not a pair of keys.
    pub fn is_symmetric(self) -> bool {
        self == Self::Hs256
    }

    fn native(self) -> jsonwebtoken::Algorithm {
        match self {
            Self::Hs256 => jsonwebtoken::Algorithm::HS256,
            Self::Rs256 => jsonwebtoken::Algorithm::RS256,
            Self::Rs384 => jsonwebtoken::Algorithm::RS384,
            Self::Rs512 => jsonwebtoken::Algorithm::RS512,
            Self::Ps256 => jsonwebtoken::Algorithm::PS256,
            Self::Ps384 => jsonwebtoken::Algorithm::PS384,
            Self::Ps512 => jsonwebtoken::Algorithm::PS512,
            Self::Es256 => jsonwebtoken::Algorithm::ES256,
            Self::Es384 => jsonwebtoken::Algorithm::ES384,
            Self::EdDsa => jsonwebtoken::Algorithm::EdDSA,
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
    /// For all other algorithms.
    pub keys: Option<KeySource>,
    pub claims: ClaimNames,
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
    #[error("the names of claims must not be empty")]
    ClaimName,
    #[error("HS256 needs a secret")]
    NoSecret,
    #[error("the secret for HS256 needs {LEAST_SECRET_BYTES} bytes at least")]
    ShortSecret,
    #[error("only HS256 works without public keys")]
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
    claims: ClaimNames,
}

#[derive(Debug)]
enum TokenKeys {
    Fixed(Arc<KeySet>),
    Fetched(Jwks),
}

/// The names of the claims that say who the caller is. A name with dots is a claim with this name, or else a path into nested claims
/// such as `realm_access.roles`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ClaimNames {
    pub user: String,
    pub tenant: String,
    pub roles: String,
}

impl Default for ClaimNames {
    fn default() -> Self {
        Self { user: "sub".to_owned(), tenant: "tenant_id".to_owned(), roles: "roles".to_owned() }
    }
}

/// What the claims of a token say.
#[derive(Debug)]
pub(super) struct Claims {
    pub(super) user: UserId,
    pub(super) tenant: TenantId,
    pub(super) roles: Vec<String>,
    /// In seconds, and some write fractions of them.
    exp: f64,
}

impl Claims {
    /// Reads the claims of a token whose signature was verified.
    fn read(claims: &Value, names: &ClaimNames) -> Option<Self> {
        let text = |name: &str| find(claims, name).and_then(Value::as_str);
        // The library would also accept a list, among which is the right one.
        claims.get("iss")?.as_str()?;
        let roles = match find(claims, &names.roles) {
            None => Vec::new(),
            Some(roles) => Vec::<String>::deserialize(roles).ok()?,
        };
        let tenant = TenantId::parse(text(&names.tenant)?).ok()?;
        // The tenant of the installation's own audit trail has no users.
        if tenant.as_str() == SYSTEM_TENANT {
            return None;
        }
        Some(Self {
            user: UserId::parse(text(&names.user)?).ok()?,
            tenant,
            roles,
            exp: claims.get("exp")?.as_f64()?,
        })
    }

    /// When it is refused.
    pub(super) fn end(&self) -> Timestamp {
        #[expect(clippy::cast_possible_truncation, reason = "what is out of bounds is as far as can be")]
        let seconds = (self.exp as i64).saturating_add_unsigned(LEEWAY_SECONDS);
        Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX)
    }
}

/// A claim by its name, or by its path.
fn find<'a>(claims: &'a Value, name: &str) -> Option<&'a Value> {
    claims.get(name).or_else(|| name.split('.').try_fold(claims, |value, part| value.get(part)))
}

impl TokenVerifier {
    pub fn new(trust: TokenTrust) -> Result<Self, InvalidTokens> {
        // Fails only when it was done before.
        let _ = jsonwebtoken::crypto::aws_lc::DEFAULT_PROVIDER.install_default();
        let TokenTrust { issuer, audience, algorithms, secret, keys, claims } = trust;
        if issuer.is_empty() || audience.is_empty() || algorithms.is_empty() {
            return Err(InvalidTokens::Empty);
        }
        if [&claims.user, &claims.tenant, &claims.roles].into_iter().any(String::is_empty) {
            return Err(InvalidTokens::ClaimName);
        }
        let is_symmetric = |algorithm: &&Algorithm| algorithm.is_symmetric();
        let secret =
            algorithms.iter().find(is_symmetric).map(|_| checked_secret(secret.as_ref())).transpose()?;
        let public: Vec<Algorithm> =
            algorithms.iter().copied().filter(|algorithm| !is_symmetric(&algorithm)).collect();
        let keys = if public.is_empty() { None } else { Some(checked_keys(keys, &public)?) };
        Ok(Self { issuer, audience, algorithms, secret, keys, claims })
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
            match jsonwebtoken::decode::<Value>(token, key, &validation) {
                Ok(decoded) => {
                    let malformed = AuthRefusal::Invalid("its claims are missing or malformed");
                    return Claims::read(&decoded.claims, &self.claims).ok_or(malformed);
                }
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
        validation.set_required_spec_claims(&["exp", "iss", "aud"]);
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
