//! Pages of others. They may use this server from a browser only when the operator says so.

use std::net::IpAddr;
use std::time::Duration;

use http::uri::Authority;
use http::{HeaderMap, HeaderName, Method, Uri, header};
use tower_http::cors::CorsLayer;

use crate::prefer;
use crate::problem::{Answer, Code, Problem};
use crate::settings::Origin;
use crate::trace;

/// How long a browser may remember what it was told.
const REMEMBER: Duration = Duration::from_mins(10);

/// Lets the pages of these origins read answers. Without any there is no layer, and browsers keep such pages out.
pub fn layer(allowed: &[Origin]) -> Option<CorsLayer> {
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

/// In open mode everybody on this machine is an administrator, and so would be every page that a browser on it shows: one that
/// gives its own name the address 127.0.0.1, or opens a WebSocket. So the name that was asked for has to be one of this machine,
/// and a page has to be this server's own.
pub fn trust(headers: &HeaderMap, uri: &Uri, allowed: &[Origin]) -> Answer<()> {
    let host = headers.get(header::HOST).map(|host| host.to_str().ok()?.parse().ok());
    let host: Option<Authority> = host.unwrap_or_else(|| uri.authority().cloned());
    if !host.as_ref().is_some_and(|host| is_loopback(host.host())) {
        let detail = "without authentication, this server answers only to the names of its own machine, such as `localhost`; \
                      use that, or set `auth.mode = \"required\"`";
        return Err(Problem::new(Code::ForeignOrigin, detail));
    }
    let Some(origin) = headers.get(header::ORIGIN) else { return Ok(()) };
    let own = host.map(|host| format!("http://{host}"));
    if own.is_some_and(|own| own == *origin) || allowed.iter().any(|known| known.header() == origin) {
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
