//! `[auth]`: who may use the server.

use std::collections::BTreeMap;
use std::path::PathBuf;

use baton_core::{Permission, choices};
use baton_server::identity::token::Algorithm;
use serde::Deserialize;

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Auth {
    pub mode: AuthMode,
    /// Whose tokens are accepted beside API keys.
    pub jwt: Option<Jwt>,
    /// Roles that are added, or that mean something else than usual.
    pub roles: BTreeMap<String, Vec<Permission>>,
}

impl Default for Auth {
    fn default() -> Self {
        Self { mode: AuthMode::Open, jwt: None, roles: BTreeMap::new() }
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
    /// For RS256 and ES256.
    pub keys: Option<JwtKeys>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JwtKeys {
    Url(String),
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
    public_key_file: Option<PathBuf>,
}

impl TryFrom<JwtTable> for Jwt {
    type Error = &'static str;

    fn try_from(table: JwtTable) -> Result<Self, Self::Error> {
        let JwtTable { issuer, audience, algorithms, jwks_url, public_key_file } = table;
        if issuer.is_empty() || audience.is_empty() || algorithms.is_empty() {
            return Err("`issuer`, `audience` and `algorithms` must not be empty");
        }
        let keys = match (jwks_url, public_key_file) {
            (Some(_), Some(_)) => return Err("only one of `jwks_url` and `public_key_file` can be used"),
            (Some(url), None) => Some(JwtKeys::Url(url)),
            (None, Some(file)) => Some(JwtKeys::File(file)),
            (None, None) => None,
        };
        let needs_keys = algorithms.iter().any(|algorithm| *algorithm != Algorithm::Hs256);
        match (needs_keys, &keys) {
            (true, None) => Err("`RS256` and `ES256` need `jwks_url` or `public_key_file`"),
            (false, Some(_)) => Err(
                "`HS256` has no public keys: remove `jwks_url` and `public_key_file`, or add an algorithm",
            ),
            _ => Ok(Self { issuer, audience, algorithms, keys }),
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
        assert_eq!(jwt.keys, Some(JwtKeys::Url("https://id.example/keys".to_owned())));
        let roles: Vec<_> = auth.roles.iter().map(|(name, list)| (name.as_str(), list.len())).collect();
        assert_eq!(roles, [("auditor", 2), ("viewer", 0)]);
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
}
