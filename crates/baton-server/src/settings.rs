//! The operator's configuration of the server.

use std::collections::HashMap;
use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;
use std::time::Duration;

use baton_core::{AgentName, TenantId};
use http::{HeaderValue, Uri};
use serde::Deserialize;

use crate::a2a::settings::A2aSettings;
use crate::client_address::TrustedProxies;
use crate::identity;
use crate::serve::tls::TlsSettings;
use crate::ui::UiSite;

#[derive(Debug, Clone)]
pub struct ServerSettings {
    pub auth: identity::AuthSettings,
    pub limits: RequestLimits,
    /// The default agent, if it does not depend on the message. Used only to display the roster.
    pub main: Option<AgentName>,
    /// What some tenants have instead.
    pub tenant_mains: HashMap<TenantId, AgentName>,
    /// Origins whose pages may call this server. Empty allows only its own.
    pub allowed_origins: Vec<AllowedOrigin>,
    /// Without it, connections are not encrypted.
    pub tls: Option<TlsSettings>,
    /// Whether a proxy encrypts, so that other addresses than loopback need no TLS here.
    pub behind_proxy: bool,
    /// Proxies that say for which client they ask.
    pub trusted_proxies: TrustedProxies,
    /// The web UI; `None` serves only the API.
    pub ui: Option<UiSite>,
    /// A2A; `None` does not serve it.
    pub a2a: Option<A2aSettings>,
    /// Interval of heartbeats on a silent stream.
    pub heartbeat: Duration,
    /// How long new connections are accepted after shutdown begins, so that a load balancer can notice.
    pub grace: Duration,
    /// How long active runs may continue after that.
    pub drain: Duration,
}

/// Limits of requests and connections.
#[derive(Debug, Clone)]
pub struct RequestLimits {
    /// Per tenant.
    pub requests_per_minute: NonZeroU32,
    pub max_body_bytes: usize,
    /// For uploaded files.
    pub max_upload_bytes: usize,
    pub max_url_bytes: usize,
    pub max_header_bytes: usize,
    /// Open runs of a tenant.
    pub max_concurrent_runs: u32,
    /// What some tenants have instead.
    pub tenants: HashMap<TenantId, TenantRequestLimits>,
    /// Open runs of one user.
    pub max_concurrent_runs_per_user: u32,
    pub max_connections: usize,
    /// Open connections of one address, or of one IPv6 network of 64 bits. Trusted proxies are not limited.
    pub max_connections_per_address: usize,
    /// Open streams of one user.
    pub max_streams_per_user: usize,
    pub max_streams_per_tenant: usize,
    /// Limit for the first headers of a connection, and for each body.
    pub read_timeout: Duration,
    /// Maximum idle time between two requests. Longer than the idle timeout of common load balancers, 60 s.
    pub keep_alive: Duration,
    /// Limit until a response starts, except when the caller waits for a run.
    pub request_timeout: Duration,
}

impl ServerSettings {
    /// The scheme of this server's own URLs.
    pub fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }

    /// The default agent of a tenant, if it does not depend on the message.
    pub fn main_of(&self, tenant: &TenantId) -> Option<&AgentName> {
        self.tenant_mains.get(tenant).or(self.main.as_ref())
    }
}

/// Limits of one tenant. `None` is as for all.
#[derive(Debug, Clone, Copy, Default)]
pub struct TenantRequestLimits {
    pub requests_per_minute: Option<NonZeroU32>,
    pub max_concurrent_runs: Option<u32>,
}

impl RequestLimits {
    /// Open runs that a tenant may have.
    pub fn max_concurrent_runs_of(&self, tenant: &TenantId) -> u32 {
        let own = self.tenants.get(tenant).and_then(|own| own.max_concurrent_runs);
        own.unwrap_or(self.max_concurrent_runs)
    }
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            auth: identity::AuthSettings::default(),
            limits: RequestLimits::default(),
            main: None,
            tenant_mains: HashMap::new(),
            allowed_origins: Vec::new(),
            tls: None,
            behind_proxy: false,
            trusted_proxies: TrustedProxies::default(),
            ui: None,
            a2a: None,
            heartbeat: Duration::from_secs(15),
            grace: Duration::ZERO,
            drain: Duration::from_secs(20),
        }
    }
}

impl Default for RequestLimits {
    fn default() -> Self {
        Self {
            requests_per_minute: NonZeroU32::new(600).expect("not zero"),
            max_body_bytes: 1 << 20,
            max_upload_bytes: 10 << 20,
            max_url_bytes: 8 << 10,
            max_header_bytes: 32 << 10,
            max_concurrent_runs: 1000,
            tenants: HashMap::new(),
            max_concurrent_runs_per_user: 100,
            max_connections: 10_000,
            max_connections_per_address: 1000,
            max_streams_per_user: 100,
            max_streams_per_tenant: 5000,
            read_timeout: Duration::from_secs(30),
            keep_alive: Duration::from_secs(75),
            request_timeout: Duration::from_secs(30),
        }
    }
}

/// The origin of a page: `https://app.example.com`, `http://localhost:5173`. Compared byte by byte, so nothing may follow the
/// authority.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct AllowedOrigin(HeaderValue);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no origin: write scheme, host and port as in `https://app.example.com` or `http://localhost:5173`"
)]
pub struct InvalidOrigin(String);

impl AllowedOrigin {
    pub fn header(&self) -> &HeaderValue {
        &self.0
    }
}

impl FromStr for AllowedOrigin {
    type Err = InvalidOrigin;

    fn from_str(text: &str) -> Result<Self, InvalidOrigin> {
        let invalid = || InvalidOrigin(text.to_owned());
        let uri: Uri = text.parse().map_err(|_| invalid())?;
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(invalid());
        };
        // The form that browsers send: lower case, without path and user info.
        let written = format!("{scheme}://{}", authority.as_str().to_ascii_lowercase());
        if !matches!(scheme, "http" | "https") || written != text || authority.as_str().contains('@') {
            return Err(invalid());
        }
        HeaderValue::from_str(text).map(Self).map_err(|_| invalid())
    }
}

impl TryFrom<String> for AllowedOrigin {
    type Error = InvalidOrigin;

    fn try_from(text: String) -> Result<Self, InvalidOrigin> {
        text.parse()
    }
}

impl fmt::Display for AllowedOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.to_str().unwrap_or_default())
    }
}
