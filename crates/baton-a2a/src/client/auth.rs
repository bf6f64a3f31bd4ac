//! Credentials for a peer. Secrets are read when an agent is connected, and never printed.

use std::fmt;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use baton_core::agent::{RemoteAuth, SecretName};
use baton_core::remote::{RemoteError, RemoteErrorKind};
use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};
use reqwest::{Client, Url};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::Secrets;
use super::http::{body, host_of, quoted};

/// Maximum bytes of a token response.
const MAX_TOKEN_BODY: usize = 64 * 1024;
/// A token is renewed this long before it expires.
const MARGIN: Duration = Duration::from_secs(30);
/// The lifetime of a token whose response does not say.
const DEFAULT_LIFETIME: Duration = Duration::from_mins(5);
const MAX_LIFETIME: Duration = Duration::from_hours(24);

/// How requests to a peer are authenticated.
pub(super) enum Credentials {
    Fixed { name: HeaderName, value: HeaderValue },
    OAuth2(ClientCredentials),
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fixed { .. } => "Credentials::Fixed",
            Self::OAuth2(_) => "Credentials::OAuth2",
        })
    }
}

/// The client credentials grant of OAuth 2.0, with its current token.
pub(super) struct ClientCredentials {
    token_url: Url,
    client_id: String,
    client_secret: SecretString,
    scopes: Vec<String>,
    token: Mutex<Option<(HeaderValue, Instant)>>,
}

impl Credentials {
    pub(super) fn new(auth: &RemoteAuth, secrets: &Secrets) -> Result<Self, RemoteError> {
        let fixed = |name: HeaderName, value: String| {
            let mut value = HeaderValue::try_from(value).map_err(|_| {
                let message = "the secret that `auth` names has characters that no header may have";
                RemoteError::new(RemoteErrorKind::Auth, message)
            })?;
            value.set_sensitive(true);
            Ok(Self::Fixed { name, value })
        };
        match auth {
            RemoteAuth::Bearer { token } => {
                fixed(AUTHORIZATION, format!("Bearer {}", read(secrets, token)?.expose_secret()))
            }
            RemoteAuth::ApiKey { header, key } => {
                let name = HeaderName::try_from(header.as_str()).map_err(|_| {
                    RemoteError::new(RemoteErrorKind::Auth, format!("`{header}` is not the name of a header"))
                })?;
                fixed(name, read(secrets, key)?.expose_secret().to_owned())
            }
            RemoteAuth::Basic { username, password } => {
                let pair = format!("{username}:{}", read(secrets, password)?.expose_secret());
                fixed(AUTHORIZATION, format!("Basic {}", STANDARD.encode(pair)))
            }
            RemoteAuth::OAuth2 { token_url, client_id, client_secret, scopes } => {
                let token_url = Url::parse(token_url).map_err(|_| {
                    RemoteError::new(RemoteErrorKind::Auth, "`token_url` of `auth` is not a URL")
                })?;
                let client_secret = read(secrets, client_secret)?;
                let (client_id, scopes, token) = (client_id.clone(), scopes.clone(), Mutex::default());
                Ok(Self::OAuth2(ClientCredentials { token_url, client_id, client_secret, scopes, token }))
            }
        }
    }

    /// The header of a request. Fetches a token if there is none.
    pub(super) async fn header(
        &self,
        client: &Client,
        timeout: Duration,
    ) -> Result<(HeaderName, HeaderValue), RemoteError> {
        match self {
            Self::Fixed { name, value } => Ok((name.clone(), value.clone())),
            Self::OAuth2(grant) => Ok((AUTHORIZATION, grant.token(client, timeout).await?)),
        }
    }

    /// Drops a token that the peer refused. Returns whether another one can be fetched.
    pub(super) fn renew(&self) -> bool {
        match self {
            Self::Fixed { .. } => false,
            // While another request fetches a token, this one waits for it.
            Self::OAuth2(grant) => grant.token.try_lock().map_or(true, |mut token| token.take().is_some()),
        }
    }
}

fn read(secrets: &Secrets, name: &SecretName) -> Result<SecretString, RemoteError> {
    secrets(name.variable()).ok_or_else(|| {
        let message = format!(
            "the environment variable `{}`, which `auth` in the agent's file names, is not set",
            name.variable()
        );
        RemoteError::new(RemoteErrorKind::Auth, message)
    })
}

impl ClientCredentials {
    /// The current token, or a new one. Requests that need one at the same time share it.
    async fn token(&self, client: &Client, timeout: Duration) -> Result<HeaderValue, RemoteError> {
        let mut token = self.token.lock().await;
        if let Some((value, _)) = token.as_ref().filter(|(_, until)| Instant::now() < *until) {
            return Ok(value.clone());
        }
        let fetched = tokio::time::timeout(timeout, self.fetch(client)).await;
        let (value, lifetime) = fetched.unwrap_or_else(|_| Err(self.failure("it did not answer in time")))?;
        let until = Instant::now() + lifetime.saturating_sub(MARGIN).max(lifetime / 2);
        *token = Some((value.clone(), until));
        Ok(value)
    }

    async fn fetch(&self, client: &Client) -> Result<(HeaderValue, Duration), RemoteError> {
        let scope = self.scopes.join(" ");
        let mut form = vec![("grant_type", "client_credentials")];
        if !scope.is_empty() {
            form.push(("scope", &scope));
        }
        let encoded = form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        let sent = client
            .post(self.token_url.clone())
            .basic_auth(urlencoded(&self.client_id), Some(urlencoded(self.client_secret.expose_secret())))
            .header(reqwest::header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(reqwest::header::ACCEPT, "application/json")
            .body(encoded)
            .send()
            .await;
        let response = sent.map_err(|error| self.failure(&error.without_url().to_string()))?;
        let status = response.status();
        let bytes = body(response, MAX_TOKEN_BODY, Duration::from_secs(10)).await?;
        let value: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        if !status.is_success() {
            let error = value["error"].as_str().map(quoted).unwrap_or_default();
            return Err(self.failure(&format!("it answered {} {error}", status.as_u16())));
        }
        let token = value["access_token"].as_str().ok_or_else(|| self.failure("it returned no token"))?;
        let mut header = HeaderValue::try_from(format!("Bearer {token}"))
            .map_err(|_| self.failure("its token has characters that no header may have"))?;
        header.set_sensitive(true);
        let lifetime = value["expires_in"].as_u64().map_or(DEFAULT_LIFETIME, Duration::from_secs);
        Ok((header, lifetime.min(MAX_LIFETIME)))
    }

    fn failure(&self, reason: &str) -> RemoteError {
        let message = format!(
            "no token from {}: {}; check `client_id` and `client_secret` of `auth`",
            host_of(&self.token_url),
            quoted(reason)
        );
        RemoteError::new(RemoteErrorKind::Auth, message)
    }
}

/// As RFC 6749 wants the parts of the basic credentials.
fn urlencoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}
