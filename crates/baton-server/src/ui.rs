//! The web UI: static files embedded in the binary, and the paths of client-side routes.
//!
//! The UI is not part of the API. The router's fallback serves it, outside the access layer and the OpenAPI document: it
//! contains no data, and the user signs in inside it. API paths never return HTML ([`path`]).

mod embedded;
mod missing;
mod negotiation;
mod path;

use std::fmt;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};

use crate::app::App;
use crate::problem::{ApiResult, Code, Problem};
use negotiation::Encoding;
use path::PagePath;

const INDEX: &str = "/index.html";

/// Scripts, styles, fonts and requests only from this server; no inline code, frames, forms, or `innerHTML` with plain strings.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; \
     connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
     require-trusted-types-for 'script'; trusted-types 'none'",
);
/// For files whose names contain a hash of their content.
const IMMUTABLE: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
/// Cached, but revalidated each time, so that an update of the server is visible immediately.
const REVALIDATE: HeaderValue = HeaderValue::from_static("no-cache");

/// One file of the UI in up to three encodings.
#[derive(Clone, Copy)]
pub struct UiFile {
    /// Request path: `/assets/app-4f2a.js`.
    pub path: &'static str,
    /// Changes with the content; without quotes.
    pub etag: &'static str,
    pub identity: &'static [u8],
    pub br: Option<&'static [u8]>,
    pub gzip: Option<&'static [u8]>,
}

/// The files of the UI. Empty if it was not built; `/` then explains how to build it.
#[derive(Debug, Clone, Copy)]
pub struct UiSite(&'static [UiFile]);

impl UiSite {
    /// The UI embedded in this binary.
    pub fn embedded() -> Self {
        Self(embedded::FILES)
    }

    pub fn new(files: &'static [UiFile]) -> Self {
        Self(files)
    }

    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    fn file(self, path: &str) -> Option<&'static UiFile> {
        self.0.iter().find(|file| file.path == path)
    }
}

/// Whether an unmatched request is for the UI, even if the file does not exist.
pub fn is_page(app: &App, request: &Request) -> bool {
    app.settings.ui.is_some() && asked(app, request).is_some()
}

fn asked(app: &App, request: &Request) -> Option<PagePath> {
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    PagePath::of(request.uri().path(), |root| app.access.has_root(root)).filter(|_| is_read)
}

/// Answers unmatched requests: with a file, the index page, or the 404 problem.
pub async fn fallback(State(app): State<App>, request: Request) -> ApiResult<Response> {
    let (path, headers) = (request.uri().path(), request.headers());
    let no_route = || Problem::new(Code::NotFound, "there is no such route; /docs lists them");
    let site = app.settings.ui.ok_or_else(no_route)?;
    match asked(&app, &request) {
        Some(PagePath::File) => {
            site.file(path).map(|file| file.response(headers)).ok_or_else(|| Problem::not_found("file"))
        }
        Some(PagePath::Page) if negotiation::accepts_html(headers) => match site.file(INDEX) {
            Some(index) => Ok(index.response(headers)),
            None if path == "/" => Ok(missing::page()),
            None => Err(no_route()),
        },
        _ => Err(no_route()),
    }
}

impl UiFile {
    fn response(&self, headers: &HeaderMap) -> Response {
        let (encoding, bytes) = self.chosen(headers);
        let etag = format!("\"{}{}\"", self.etag, encoding.suffix());
        let is_known = negotiation::is_known(headers, &etag);
        let mut response = if is_known {
            StatusCode::NOT_MODIFIED.into_response()
        } else {
            Response::new(Body::from(Bytes::from_static(bytes)))
        };
        // A 304 replaces the headers that the browser has stored, so it carries the same policies.
        let answer = response.headers_mut();
        answer.extend(POLICIES);
        answer.insert(header::CACHE_CONTROL, if self.is_immutable() { IMMUTABLE } else { REVALIDATE });
        answer.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        if let Ok(etag) = HeaderValue::from_str(&etag) {
            answer.insert(header::ETAG, etag);
        }
        if !is_known {
            answer.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type(self.path)));
            answer.extend(encoding.header().map(|name| (header::CONTENT_ENCODING, name)));
        }
        response
    }

    fn chosen(&self, headers: &HeaderMap) -> (Encoding, &'static [u8]) {
        let forms = [
            (Encoding::Brotli, self.br),
            (Encoding::Gzip, self.gzip),
            (Encoding::Identity, Some(self.identity)),
        ];
        let forms: Vec<_> =
            forms.into_iter().filter_map(|(encoding, bytes)| Some((encoding, bytes?))).collect();
        let chosen = Encoding::choose(headers, forms.iter().map(|(encoding, _)| *encoding));
        forms
            .into_iter()
            .find(|(encoding, _)| *encoding == chosen)
            .unwrap_or((Encoding::Identity, self.identity))
    }

    fn is_immutable(&self) -> bool {
        path::is_asset(self.path)
    }
}

/// In addition to the headers of every response ([`crate::guards::headers`]).
const POLICIES: [(HeaderName, HeaderValue); 2] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin")),
];

fn media_type(path: &str) -> &'static str {
    let extension = path.rsplit_once('.').map_or("", |(_, extension)| extension);
    match extension {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "txt" => "text/plain; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "webp" => "image/webp",
        "avif" => "image/avif",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "woff" => "font/woff",
        "json" | "map" => "application/json",
        "webmanifest" => "application/manifest+json",
        "wasm" => "application/wasm",
        _ => "application/octet-stream",
    }
}

impl fmt::Debug for UiFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("File").field("path", &self.path).field("etag", &self.etag).finish_non_exhaustive()
    }
}
