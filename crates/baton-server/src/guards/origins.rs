//! Cross-origin requests. Only origins that the operator allows may use this server from a browser.

use std::net::IpAddr;
use std::time::Duration;

use http::uri::Authority;
use http::{HeaderMap, HeaderName, Method, Uri, header};
use tower_http::cors::CorsLayer;

use crate::prefer;
use crate::problem::{ApiResult, Code, Problem};
use crate::settings::{AllowedOrigin, ServerSettings};
use crate::trace;

/// How long a browser may cache a preflight response.
const REMEMBER: Duration = Duration::from_mins(10);

/// CORS for these origins. Without any there is no layer, and browsers block other origins.
pub fn layer(allowed: &[AllowedOrigin]) -> Option<CorsLayer> {
    let name = HeaderName::from_static;
    let layer = CorsLayer::new()
        .allow_origin(allowed.iter().map(|origin| origin.header().clone()).collect::<Vec<_>>())
        .allow_methods([Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE])
        .allow_headers([
            header::ACCEPT,
            header::AUTHORIZATION,
            header::CONTENT_TYPE,
            name("last-event-id"),
            name("idempotency-key"),
            prefer::HEADER,
            name("traceparent"),
            name("tracestate"),
            name("a2a-version"),
            name("a2a-extensions"),
            name("x-a2a-extensions"),
        ])
        .expose_headers([
            name(trace::HEADER),
            name("traceparent"),
            header::RETRY_AFTER,
            name("ratelimit"),
            name("ratelimit-policy"),
            prefer::APPLIED,
        ])
        .max_age(REMEMBER);
    (!allowed.is_empty()).then_some(layer)
}

/// Refuses requests that a proxy passes on, for open mode: their real clients would all be administrators.
pub fn direct(headers: &HeaderMap) -> ApiResult<()> {
    let marks = |name: &HeaderName| {
        let name = name.as_str();
        matches!(name, "forwarded" | "via" | "x-real-ip") || name.starts_with("x-forwarded-")
    };
    let Some(name) = headers.keys().find(|name| marks(name)) else { return Ok(()) };
    let detail = format!(
        "a proxy passed this request on (`{name}`), and without authentication each of its clients would be an administrator: set \
         `auth.mode = \"required\"` and `server.trusted_proxies` in baton.toml, or connect without the proxy"
    );
    Err(Problem::new(Code::ForwardedRequest, detail))
}

/// Protects open mode, in which every local client is an administrator. A page in a local browser could otherwise use this
/// server, by DNS rebinding to 127.0.0.1 or through a WebSocket. The host must therefore be a loopback name, and the origin
/// must be this server's own or an allowed one.
pub fn trust(headers: &HeaderMap, uri: &Uri, settings: &ServerSettings) -> ApiResult<()> {
    let host = headers.get(header::HOST).map(|host| host.to_str().ok()?.parse().ok());
    let host: Option<Authority> = host.unwrap_or_else(|| uri.authority().cloned());
    if !host.as_ref().is_some_and(|host| is_loopback(host.host())) {
        let detail = "without authentication, this server answers only to the names of its own machine, such as `localhost`; \
                      use that, or set `auth.mode = \"required\"`";
        return Err(Problem::new(Code::ForeignOrigin, detail));
    }
    let Some(origin) = headers.get(header::ORIGIN) else { return Ok(()) };
    let own = host.map(|host| format!("{}://{host}", settings.scheme()));
    if own.is_some_and(|own| own == *origin)
        || settings.allowed_origins.iter().any(|known| known.header() == origin)
    {
        return Ok(());
    }
    let detail = "a page of another origin may not use this server; `server.allowed_origins` says which may";
    Err(Problem::new(Code::ForeignOrigin, detail))
}

pub fn is_loopback(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || address.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}
