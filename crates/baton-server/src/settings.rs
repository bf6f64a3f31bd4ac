//! What the operator decides about the server.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;
use std::time::Duration;

use baton_core::AgentName;
use http::{HeaderValue, Uri};
use serde::Deserialize;

use crate::identity;
use crate::ui::Site;

#[derive(Debug, Clone)]
pub struct Settings {
    pub auth: identity::Settings,
    pub limits: Limits,
    /// Who answers when nobody is named, where that does not depend on the message. Only for the picture of the roster.
    pub main: Option<AgentName>,
    /// Origins whose pages may call this server. Empty: none but its own.
    pub allowed_origins: Vec<Origin>,
    /// The web page. `None`: only the API.
    pub ui: Option<Site>,
    /// How often a silent stream says that it is alive.
    pub heartbeat: Duration,
    /// How long new connections are still answered after the server was asked to end, so that a load balancer can notice.
    pub grace: Duration,
    /// How long running runs may go on after that.
    pub drain: Duration,
}

/// What is refused before anybody works on it.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Per tenant.
    pub requests_per_minute: NonZeroU32,
    pub max_body_bytes: usize,
    /// For files that are uploaded.
    pub max_upload_bytes: usize,
    pub max_url_bytes: usize,
    pub max_header_bytes: usize,
    /// Runs of a tenant that are queued or at work.
    pub max_concurrent_runs: u32,
    pub max_connections: usize,
    /// Until the first headers of a connection, and each body, have arrived.
    pub read_timeout: Duration,
    /// How long a connection may do nothing between two requests. Longer than load balancers keep theirs, which is a minute.
    pub keep_alive: Duration,
    /// Until an answer begins, except where a run is waited for.
    pub request_timeout: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            auth: identity::Settings::default(),
            limits: Limits::default(),
            main: None,
            allowed_origins: Vec::new(),
            ui: None,
            heartbeat: Duration::from_secs(15),
            grace: Duration::ZERO,
            drain: Duration::from_secs(20),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            requests_per_minute: NonZeroU32::new(600).expect("not zero"),
            max_body_bytes: 1 << 20,
            max_upload_bytes: 10 << 20,
            max_url_bytes: 8 << 10,
            max_header_bytes: 32 << 10,
            max_concurrent_runs: 1000,
            max_connections: 10_000,
            read_timeout: Duration::from_secs(30),
            keep_alive: Duration::from_secs(75),
            request_timeout: Duration::from_secs(30),
        }
    }
}

/// Where a page comes from: `https://app.example.com`, `http://localhost:5173`. Compared as it is written, so nothing may follow.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Origin(HeaderValue);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no origin: write scheme, host and port as in `https://app.example.com` or `http://localhost:5173`"
)]
pub struct InvalidOrigin(String);

impl Origin {
    pub fn header(&self) -> &HeaderValue {
        &self.0
    }
}

impl FromStr for Origin {
    type Err = InvalidOrigin;

    fn from_str(text: &str) -> Result<Self, InvalidOrigin> {
        let invalid = || InvalidOrigin(text.to_owned());
        let uri: Uri = text.parse().map_err(|_| invalid())?;
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(invalid());
        };
        // What a browser sends: in small letters, without a path and without somebody's name.
        let written = format!("{scheme}://{}", authority.as_str().to_ascii_lowercase());
        if !matches!(scheme, "http" | "https") || written != text || authority.as_str().contains('@') {
            return Err(invalid());
        }
        HeaderValue::from_str(text).map(Self).map_err(|_| invalid())
    }
}

impl TryFrom<String> for Origin {
    type Error = InvalidOrigin;

    fn try_from(text: String) -> Result<Self, InvalidOrigin> {
        text.parse()
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.to_str().unwrap_or_default())
    }
}
