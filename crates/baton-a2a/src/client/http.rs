//! HTTP requests with limits, credentials and errors that name no secret.

use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

use baton_core::remote::{RemoteError, RemoteErrorKind};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue, WWW_AUTHENTICATE};
use reqwest::redirect::{Action, Attempt, Policy};
use reqwest::{Method, Response, StatusCode, Url};
use serde_json::Value;

use super::ClientTimeouts;
use super::auth::Credentials;
use crate::signature::JwkSet;

/// Maximum bytes of a response that is not a stream.
pub(super) const MAX_BODY: usize = 8 * 1024 * 1024;
/// Maximum bytes that are read of an error.
const MAX_ERROR_BODY: usize = 64 * 1024;
const MAX_REDIRECTS: usize = 3;
/// Maximum characters of a peer's text in an error.
const MAX_QUOTED: usize = 300;

/// A client for all peers. Proxies of the environment are used, as for models.
pub(super) fn client(timeouts: &ClientTimeouts) -> Result<reqwest::Client, RemoteError> {
    // The process has one TLS provider; the first user installs it.
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    }
    reqwest::Client::builder()
        .redirect(Policy::custom(follow_on_same_host))
        .connect_timeout(timeouts.connect)
        .referer(false)
        .user_agent(concat!("baton/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|error| RemoteError::new(RemoteErrorKind::Unreachable, error.without_url().to_string()))
}

/// Credentials go with the request, so a redirect is followed only within its origin and if it keeps the method.
fn follow_on_same_host(attempt: Attempt) -> Action {
    let origin = attempt.previous().first().map(Url::origin);
    let keeps_method = matches!(attempt.status().as_u16(), 307 | 308);
    let is_same = origin == Some(attempt.url().origin());
    if keeps_method && is_same && attempt.previous().len() <= MAX_REDIRECTS {
        attempt.follow()
    } else {
        attempt.stop()
    }
}

/// A request to a peer.
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) body: Option<Value>,
    /// Until the head of the response.
    pub(super) timeout: Duration,
    /// Whether the credentials are sent.
    pub(super) is_authenticated: bool,
}

impl Request {
    pub(super) fn new(method: Method, url: Url, timeout: Duration) -> Self {
        Self { method, url, headers: HeaderMap::new(), body: None, timeout, is_authenticated: true }
    }

    /// Adds a header. A value that is no valid header is left out.
    pub(super) fn header(mut self, name: &'static str, value: &str) -> Self {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            self.headers.insert(name, value);
        }
        self
    }
}

/// Sends requests to one peer.
#[derive(Debug)]
pub(super) struct Http {
    client: reqwest::Client,
    pub(super) timeouts: ClientTimeouts,
    credentials: Option<Credentials>,
    /// The keys of which one has to have signed a card; `None` accepts every card.
    pub(super) trusted: Option<Arc<JwkSet>>,
}

impl Http {
    pub(super) fn new(
        client: reqwest::Client,
        timeouts: ClientTimeouts,
        credentials: Option<Credentials>,
        trusted: Option<Arc<JwkSet>>,
    ) -> Self {
        Self { client, timeouts, credentials, trusted }
    }

    pub(super) fn has_credentials(&self) -> bool {
        self.credentials.is_some()
    }

    /// Sends a request and returns the head of the response. With 401, a token that can be renewed is renewed once.
    pub(super) async fn send(&self, request: &Request) -> Result<Response, RemoteError> {
        let response = self.attempt(request).await?;
        let renews = request.is_authenticated
            && response.status() == StatusCode::UNAUTHORIZED
            && self.credentials.as_ref().is_some_and(Credentials::renew);
        if renews { self.attempt(request).await } else { Ok(response) }
    }

    async fn attempt(&self, request: &Request) -> Result<Response, RemoteError> {
        let mut builder = self.client.request(request.method.clone(), request.url.clone());
        builder = builder.headers(request.headers.clone());
        if let (true, Some(credentials)) = (request.is_authenticated, &self.credentials) {
            let (name, value) = credentials.header(&self.client, request.timeout).await?;
            builder = builder.header(name, value);
        }
        if let Some(body) = &request.body {
            builder = builder.json(body);
        }
        let sent = tokio::time::timeout(request.timeout, builder.send()).await;
        match sent {
            Err(_) => {
                let message = format!(
                    "{} did not answer within {} s",
                    host_of(&request.url),
                    request.timeout.as_secs_f32()
                );
                Err(RemoteError::new(RemoteErrorKind::Timeout, message))
            }
            Ok(Err(error)) => Err(unreachable(&request.url, error)),
            Ok(Ok(response))
                if response.status().is_redirection() && response.status() != StatusCode::NOT_MODIFIED =>
            {
                let message = format!(
                    "{} redirects to another place, which is not followed: configure the final address",
                    host_of(&request.url)
                );
                Err(RemoteError::new(RemoteErrorKind::Refused, message))
            }
            Ok(Ok(response)) => Ok(response),
        }
    }
}

/// The host and port of an address: the path may contain a secret.
pub(super) fn host_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

fn unreachable(url: &Url, error: reqwest::Error) -> RemoteError {
    let error = error.without_url();
    let cause = std::iter::successors(error.source(), |error| (*error).source()).last();
    let cause = cause.map_or_else(|| error.to_string(), ToString::to_string);
    let (kind, what) = if error.is_connect() {
        (RemoteErrorKind::Unreachable, "cannot be reached")
    } else {
        (RemoteErrorKind::Disconnected, "broke the connection")
    };
    RemoteError::new(kind, format!("{} {what}: {}", host_of(url), quoted(&cause)))
}

/// A text of a peer in an error: one line, cut.
pub(super) fn quoted(text: &str) -> String {
    let text: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    baton_core::text::head(&text, MAX_QUOTED)
}

/// Reads a body up to `limit` bytes, each chunk within the time limit for silence.
pub(super) async fn body(
    mut response: Response,
    limit: usize,
    silence: Duration,
) -> Result<Vec<u8>, RemoteError> {
    let url = response.url().clone();
    let mut bytes = Vec::new();
    loop {
        let chunk = tokio::time::timeout(silence, response.chunk()).await;
        let chunk = chunk.map_err(|_| {
            let message = format!("{} stopped in the middle of a response", host_of(&url));
            RemoteError::new(RemoteErrorKind::Timeout, message)
        })?;
        match chunk.map_err(|error| unreachable(&url, error))? {
            None => return Ok(bytes),
            Some(chunk) if bytes.len() + chunk.len() > limit => {
                let message = format!("{} answered with more than {limit} bytes", host_of(&url));
                return Err(RemoteError::new(RemoteErrorKind::Malformed, message));
            }
            Some(chunk) => bytes.extend_from_slice(&chunk),
        }
    }
}

/// The JSON of a response, and its status.
pub(super) async fn json(response: Response, silence: Duration) -> Result<(StatusCode, Value), RemoteError> {
    let (status, host) = (response.status(), host_of(response.url()));
    let limit = if status.is_success() { MAX_BODY } else { MAX_ERROR_BODY };
    let bytes = body(response, limit, silence).await?;
    match serde_json::from_slice(&bytes) {
        Ok(value) => Ok((status, value)),
        Err(_) if !status.is_success() => Ok((status, Value::Null)),
        Err(_) => {
            Err(RemoteError::new(RemoteErrorKind::Malformed, format!("{host} did not answer with JSON")))
        }
    }
}

/// The error of an authentication that failed, if the response says so.
pub(super) fn auth_error(response: &Response, has_credentials: bool) -> Option<RemoteError> {
    let host = host_of(response.url());
    let message = match response.status() {
        StatusCode::UNAUTHORIZED if has_credentials => {
            format!("{host} refuses the credentials: check the secret that `auth` in the agent's file names")
        }
        StatusCode::UNAUTHORIZED => {
            let scheme = response.headers().get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok());
            let scheme = scheme.and_then(|value| value.split_whitespace().next()).unwrap_or("unknown");
            format!("{host} needs authentication ({}): add `auth` to the agent's file", quoted(scheme))
        }
        StatusCode::FORBIDDEN => format!("{host} does not allow this with these credentials"),
        _ => return None,
    };
    Some(RemoteError::new(RemoteErrorKind::Auth, message))
}
