//! What `/` shows when the binary was built without the page: how to build it.

use std::sync::LazyLock;

use axum::response::{Html, IntoResponse as _, Response};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::{HeaderValue, header};
use sha2::{Digest as _, Sha256};

const PAGE: &str = include_str!("../../assets/ui/missing.html");

/// No script at all, and only the one style sheet of the page itself.
static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let style = PAGE.split_once("<style>").and_then(|(_, rest)| rest.split_once("</style>"));
    let digest = BASE64_STANDARD.encode(Sha256::digest(style.map_or("", |(style, _)| style)));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    HeaderValue::from_str(&policy).expect("a policy of visible characters")
});

pub fn page() -> Response {
    ([(header::CONTENT_SECURITY_POLICY, POLICY.clone())], Html(PAGE)).into_response()
}
