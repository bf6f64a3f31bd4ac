//! Security headers of every response, unless the handler sets them.

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::{HeaderName, HeaderValue, StatusCode, Version, header};

use crate::app::App;
use crate::serve::admission::ConnectionRefusal;

const ALWAYS: [(HeaderName, HeaderValue); 6] = [
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'")),
    (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin")),
];

/// One year, for browsers that have used TLS once.
const ENCRYPTED: HeaderValue = HeaderValue::from_static("max-age=31536000");

pub async fn layer(State(app): State<App>, request: Request, next: Next) -> Response {
    let version = request.version();
    let is_refused = request.extensions().get::<ConnectionRefusal>().is_some();
    let mut response = next.run(request).await;
    let is_switching = response.status() == StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    for (name, value) in ALWAYS {
        headers.entry(name).or_insert(value);
    }
    if app.settings.tls.is_some() {
        headers.entry(header::STRICT_TRANSPORT_SECURITY).or_insert(ENCRYPTED);
    }
    // The connection closes soon. HTTP/2 sends a GOAWAY frame instead.
    if (app.is_draining() || is_refused) && version <= Version::HTTP_11 && !is_switching {
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}
