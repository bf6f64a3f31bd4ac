//! Who may use the server, as `[auth]` says.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context as _;
use baton_core::Permission;
use baton_server::identity::token::{InvalidTokens, KeySource, TokenTrust, TokenVerifier};
use baton_server::identity::{self, AuthenticationMode, jwks};

use crate::config::{AuthMode, Jwt, JwtKeys};
use crate::exit::Exit;
use crate::project::Project;
use crate::wiring;

/// Holds the secret for HS256, or with `_FILE` the name of a file that does.
const SECRET: &str = "BATON_JWT_SECRET";

/// Who may use the server: `[auth]`, and the keys that tokens are checked with. Those are read only where they are needed.
pub fn auth_settings(project: &Project) -> anyhow::Result<identity::AuthSettings> {
    let auth = &project.config.auth;
    let roles: BTreeMap<String, Vec<Permission>> = auth.roles.clone();
    let (mode, jwt) = match auth.mode {
        AuthMode::Open => (AuthenticationMode::Open, None),
        AuthMode::Required => (AuthenticationMode::Required, auth.jwt.as_ref()),
    };
    let tokens = jwt.map(|jwt| tokens(project, jwt)).transpose();
    let tokens =
        tokens.context("`[auth.jwt]` in baton.toml").map_err(|error| Exit::Invalid.because(error))?;
    let operators = auth.operators.clone();
    Ok(identity::AuthSettings { mode, roles, tokens: tokens.map(Arc::new), operators })
}

fn tokens(project: &Project, jwt: &Jwt) -> anyhow::Result<TokenVerifier> {
    let keys = match &jwt.keys {
        Some(JwtKeys::Url { url, max_stale }) => {
            let settings = jwks::JwksSettings { max_stale: *max_stale, ..jwks::JwksSettings::new(url) };
            Some(KeySource::Jwks(settings))
        }
        Some(JwtKeys::File(file)) => {
            let path = project.root.join(file);
            let text = std::fs::read_to_string(&path);
            let text = text.with_context(|| format!("cannot read the public keys in {}", path.display()))?;
            Some(KeySource::Pem(text))
        }
        None => None,
    };
    let is_symmetric = jwt.algorithms.iter().any(|algorithm| algorithm.is_symmetric());
    let secret = if is_symmetric { wiring::secret_from(SECRET)? } else { None };
    let trust = TokenTrust {
        issuer: jwt.issuer.clone(),
        audience: jwt.audience.clone(),
        algorithms: jwt.algorithms.clone(),
        secret,
        keys,
        claims: jwt.claims.clone(),
    };
    TokenVerifier::new(trust).map_err(|error| match error {
        InvalidTokens::NoSecret | InvalidTokens::ShortSecret => {
            anyhow::anyhow!("{error}: set {SECRET}, or {SECRET}_FILE to a file that holds it")
        }
        other => other.into(),
    })
}
