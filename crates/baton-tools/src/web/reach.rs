//! Which hosts may be reached, and a client that reaches no others.
//!
//! Names are resolved and checked in the same step that gives the client its addresses. There is no second lookup, so a
//! name that answers differently the next time (DNS rebinding) gains nothing.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use tokio::sync::OnceCell;
use url::{Host, Url};

use super::address::is_public;

const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// What an operator allows beyond the public internet.
#[derive(Debug, Clone, Default)]
pub struct Reach {
    /// Everything, also the machine itself.
    pub allow_private: bool,
    /// Hosts that may have a private address, as they stand in the URL.
    pub allowed_hosts: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReachRefused {
    #[error("only http and https addresses can be fetched, not `{0}:`")]
    Scheme(String),
    #[error("the address has no host")]
    NoHost,
    #[error("addresses with a user name or password are not fetched")]
    Credentials,
    #[error("`{0}` is not on the public internet")]
    Private(String),
}

impl Reach {
    /// Checks what can be known from the URL alone. Names are checked when they are resolved.
    pub fn check(&self, url: &Url) -> Result<(), ReachRefused> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(ReachRefused::Scheme(url.scheme().to_owned()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(ReachRefused::Credentials);
        }
        // The URL parser has made 2130706433, 0x7f.1 and the like into addresses.
        let literal = match url.host().ok_or(ReachRefused::NoHost)? {
            Host::Domain(_) => return Ok(()),
            Host::Ipv4(address) => IpAddr::V4(address),
            Host::Ipv6(address) => IpAddr::V6(address),
        };
        let host = literal.to_string();
        if self.permits(&host, literal) { Ok(()) } else { Err(ReachRefused::Private(host)) }
    }

    fn permits(&self, host: &str, address: IpAddr) -> bool {
        let host = host.trim_end_matches('.');
        let is_listed = || self.allowed_hosts.iter().any(|allowed| allowed.eq_ignore_ascii_case(host));
        self.allow_private || is_public(address) || is_listed()
    }

    /// Proxies of the environment are not used: a proxy resolves names itself, unchecked. Redirects are left to the
    /// caller, who checks each.
    pub fn client(&self) -> reqwest::Result<reqwest::Client> {
        reqwest::Client::builder()
            .dns_resolver(Arc::new(CheckedResolver(self.clone())))
            .redirect(Policy::none())
            .no_proxy()
            .referer(false)
            // A call that ended leaves no connection behind.
            .pool_max_idle_per_host(0)
            .connect_timeout(CONNECT_WITHIN)
            .user_agent(concat!("baton/", env!("CARGO_PKG_VERSION")))
            .build()
    }
}

/// A client that is made when it is first needed: reading the certificates of the machine takes tens of milliseconds, which most servers
/// would spend at their start without need.
#[derive(Debug)]
pub struct LazyClient {
    reach: Reach,
    client: OnceCell<reqwest::Client>,
}

impl LazyClient {
    pub fn new(reach: Reach) -> Self {
        Self { reach, client: OnceCell::new() }
    }

    pub fn reach(&self) -> &Reach {
        &self.reach
    }

    /// Makes the client on a blocking thread on first use; concurrent callers wait for it. After a failure the next call tries again.
    pub async fn get(&self) -> reqwest::Result<&reqwest::Client> {
        let make = async || {
            let reach = self.reach.clone();
            let made = tokio::task::spawn_blocking(move || reach.client()).await;
            // Blocking tasks of a runtime that shuts down are cancelled.
            made.unwrap_or_else(|_| self.reach.client())
        };
        self.client.get_or_try_init(make).await
    }
}

struct CheckedResolver(Reach);

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let reach = self.0.clone();
        Box::pin(async move {
            let host = name.as_str();
            let found = tokio::net::lookup_host((host, 0)).await?;
            let permitted: Vec<SocketAddr> = found.filter(|found| reach.permits(host, found.ip())).collect();
            if permitted.is_empty() {
                return Err(ReachRefused::Private(host.to_owned()).into());
            }
            Ok(Box::new(permitted.into_iter()) as Addrs)
        })
    }
}
