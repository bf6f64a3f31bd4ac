//! `[auth]`: who may use the server.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use baton_core::duration::HumanDuration;
use baton_core::{Permission, TenantId, choices};
use baton_server::identity::token::{Algorithm, ClaimNames};
use serde::Deserialize;

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Auth {
    pub mode: AuthMode,
    /// Whose tokens are accepted beside API keys.
    pub jwt: Option<Jwt>,
    /// Roles that are added, or that mean something else than usual.
    pub roles: BTreeMap<String, Vec<Permission>>,
    /// Tenants that operate the installation: their users may have permissions that reach beyond a tenant.
    pub operators: Vec<TenantId>,
}

impl Default for Auth {
    fn default() -> Self {
        let operators = TenantId::parse("default").into_iter().collect();
        Self { mode: AuthMode::Open, jwt: None, roles: BTreeMap::new(), operators }
    }
}

choices! {
    pub enum AuthMode {
        /// Everyone is the local administrator; only on loopback.
        Open = "open",
        Required = "required",
    }
}

/// What a token has to be like. The secret for HS256 comes from the environment, never from this file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "JwtTable")]
pub struct Jwt {
    pub issuer: String,
    pub audience: String,
    pub algorithms: Vec<Algorithm>,
    /// For all algorithms but HS256.
    pub keys: Option<JwtKeys>,
    pub claims: ClaimNames,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JwtKeys {
    Url {
        url: String,
        /// How long keys are used that cannot be fetched again.
        max_stale: Duration,
    },
    /// Relative to the folder of `baton.toml`.
    File(PathBuf),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JwtTable {
    issuer: String,
    audience: String,
    algorithms: Vec<Algorithm>,
    jwks_url: Option<String>,
    jwks_max_stale: Option<HumanDuration>,
    public_key_file: Option<PathBuf>,
    #[serde(default)]
    claims: ClaimNames,
}

/// The default of `jwks_max_stale`.
const MAX_STALE: Duration = Duration::from_hours(1);

impl TryFrom<JwtTable> for Jwt {
    type Error = &'static str;

    fn try_from(table: JwtTable) -> Result<Self, Self::Error> {
        let JwtTable { issuer, audience, algorithms, jwks_url, jwks_max_stale, public_key_file, claims } =
            table;
        if issuer.is_empty() || audience.is_empty() || algorithms.is_empty() {
            return Err("`issuer`, `audience` and `algorithms` must not be empty");
        }
        if [&claims.user, &claims.tenant, &claims.roles].into_iter().any(String::is_empty) {
            return Err("the names in `claims` must not be empty");
        }
        if jwks_max_stale.is_some() && jwks_url.is_none() {
            return Err("`jwks_max_stale` is about the keys of `jwks_url`, which is not set");
        }
        let max_stale = jwks_max_stale.map_or(MAX_STALE, HumanDuration::get);
        if max_stale.is_zero() {
            return Err("`jwks_max_stale` must not be zero");
        }
        let keys = match (jwks_url, public_key_file) {
            (Some(_), Some(_)) => return Err("only one of `jwks_url` and `public_key_file` can be used"),
            (Some(url), None) => Some(JwtKeys::Url { url, max_stale }),
            (None, Some(file)) => Some(JwtKeys::File(file)),
            (None, None) => None,
        };
        let needs_keys = algorithms.iter().any(|algorithm| !algorithm.is_symmetric());
        match (needs_keys, &keys) {
            (true, None) => Err("all algorithms but `HS256` need `jwks_url` or `public_key_file`"),
            (false, Some(_)) => Err(
                "`HS256` has no public keys: remove `jwks_url` and `public_key_file`, or add an algorithm",
            ),
            _ => Ok(Self { issuer, audience, algorithms, keys, claims }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::{Config, ConfigError, FILE_NAME};

    fn parse(text: &str) -> Result<Auth, ConfigError> {
        Config::parse(text, Path::new(FILE_NAME), std::iter::empty()).map(|config| config.auth)
    }

    const JWT: &str = "[auth.jwt]\nissuer = 'https://id.example'\naudience = 'baton'\n";

    #[test]
    fn tokens_and_roles_are_read() {
        let text = format!(
            "[auth]\nmode = 'required'\n{JWT}algorithms = ['RS256', 'ES256']\njwks_url = 'https://id.example/keys'\n\
             [auth.roles]\nauditor = ['audit:read', 'usage:*']\nviewer = []\n"
        );
        let auth = parse(&text).unwrap();
        assert_eq!(auth.mode, AuthMode::Required);
        let jwt = auth.jwt.unwrap();
        assert_eq!(jwt.algorithms, [Algorithm::Rs256, Algorithm::Es256]);
        let url = "https://id.example/keys".to_owned();
        assert_eq!(jwt.keys, Some(JwtKeys::Url { url, max_stale: MAX_STALE }));
        assert_eq!(jwt.claims, ClaimNames::default());
        assert_eq!(auth.operators, [TenantId::parse("default").unwrap()]);
        let roles: Vec<_> = auth.roles.iter().map(|(name, list)| (name.as_str(), list.len())).collect();
        assert_eq!(roles, [("auditor", 2), ("viewer", 0)]);
        let named = parse(&format!(
            "[auth]\noperators = ['ops']\n{JWT}algorithms = ['PS512', 'EdDSA']\njwks_url = 'https://id.example/keys'\n\
             jwks_max_stale = '10m'\nclaims = {{ tenant = 'org', roles = 'realm_access.roles' }}\n"
        ));
        let Auth { operators, jwt, .. } = named.unwrap();
        assert_eq!(operators, [TenantId::parse("ops").unwrap()]);
        let Jwt { algorithms, keys, claims, .. } = jwt.unwrap();
        assert_eq!(algorithms, [Algorithm::Ps512, Algorithm::EdDsa]);
        let JwtKeys::Url { max_stale, .. } = keys.unwrap() else { panic!("an address") };
        assert_eq!(max_stale, Duration::from_mins(10));
        assert_eq!((&*claims.user, &*claims.tenant, &*claims.roles), ("sub", "org", "realm_access.roles"));
        let file = parse(&format!("{JWT}algorithms = ['ES256']\npublic_key_file = 'keys.pem'\n")).unwrap();
        assert_eq!(file.jwt.unwrap().keys, Some(JwtKeys::File("keys.pem".into())));
        assert_eq!(parse(&format!("{JWT}algorithms = ['HS256']\n")).unwrap().jwt.unwrap().keys, None);
    }

    #[test]
    fn mistakes_are_shown_with_their_place() {
        let cases = [
            (
                "[auth.roles]\nauditor = ['audit:read', 'Audit']\n".to_owned(),
                "line 2",
                "`Audit` is not a permission",
            ),
            ("[auth]\nmodes = 'open'\n".to_owned(), "line 2", "`mode`"),
            (format!("{JWT}algorithms = ['none']\n"), "line 4", "`HS256`"),
            (format!("{JWT}algorithms = ['HS256']\nsecret = 'x'\n"), "line 5", "unknown field `secret`"),
            (format!("{JWT}algorithms = []\n"), "line 1", "must not be empty"),
            (JWT.to_owned(), "line 1", "`algorithms`"),
            (format!("{JWT}algorithms = ['RS256']\n"), "line 1", "need `jwks_url` or `public_key_file`"),
            (format!("{JWT}algorithms = ['HS256']\njwks_max_stale = '1h'\n"), "line 1", "`jwks_max_stale`"),
            (
                format!("{JWT}algorithms = ['HS256']\nclaims = {{ user = '' }}\n"),
                "line 1",
                "must not be empty",
            ),
            (format!("{JWT}algorithms = ['HS256']\nclaims = {{ users = 'x' }}\n"), "line 5", "`users`"),
            (format!("{JWT}algorithms = ['HS256']\njwks_url = 'x'\n"), "line 1", "no public keys"),
            (
                format!("{JWT}algorithms = ['RS256']\njwks_url = 'x'\npublic_key_file = 'y'\n"),
                "line 1",
                "only one of",
            ),
        ];
        for (text, line, said) in cases {
            let error = parse(&text).unwrap_err().to_string();
            assert!(error.contains(line) && error.contains(said), "{text}\n{error}");
        }
    }

    /// ES512 is refused by its name, with the reason.
    #[test]
    fn es512_is_refused_by_name() {
        let error = parse(&format!("{JWT}algorithms = ['ES512']\njwks_url = 'https://id.example/keys'\n"));
        let error = error.unwrap_err().to_string();
        assert!(error.contains("ES512 is not supported") && error.contains("ES384"), "{error}");
        let error = parse(&format!("{JWT}algorithms = ['none']\njwks_url = 'https://id.example/keys'\n"));
        assert!(error.unwrap_err().to_string().contains("unknown variant `none`"));
    }
}
