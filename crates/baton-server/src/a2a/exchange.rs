//! The request of a client: who asks which agent, and with which conventions.

use std::sync::Arc;

use axum::extract::{FromRequestParts, RawPathParams};
use baton_a2a::{ErrorCode, WireForm, extension};
use baton_core::agent::Agent;
use baton_core::store::run::Idempotency;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use jiff::Timestamp;

use super::cards;
use super::failure::{A2aFailure, A2aResult};
use crate::app::App;
use crate::identity::Caller;
use crate::named;
use crate::problem::Problem;
use crate::strict::repeatable;
use crate::trace::Trace;

/// The header, or query parameter, with the protocol version.
pub const VERSION: &str = "A2A-Version";

/// A request before its method is known.
#[derive(Debug)]
pub struct Exchange {
    pub app: App,
    pub caller: Caller,
    pub trace: Trace,
    /// The agent of the path; `None` for the main agent.
    pub agent: Option<Arc<Agent>>,
    /// The address of this server for links, if it is known.
    pub base: Option<String>,
    /// The requested protocol version.
    version: Option<String>,
    /// Whether the request activates the handoff extension.
    pub extension: bool,
    pub idempotency_key: Option<String>,
    pub path: String,
}

impl FromRequestParts<App> for Exchange {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let caller = Caller::from_request_parts(parts, app).await?;
        let trace = Trace::from_request_parts(parts, app).await?;
        let agent = match path_param(parts, app, "agent").await {
            Some(name) => Some(named::newest_agent(app, &caller, &name).await?),
            None => None,
        };
        Ok(Self {
            caller,
            trace,
            agent,
            base: cards::base_url(app, &parts.headers),
            version: version(&parts.headers, &parts.uri),
            extension: activates_extension(&parts.headers),
            idempotency_key: repeatable::key(&parts.headers)?,
            path: parts.uri.path().to_owned(),
            app: app.clone(),
        })
    }
}

impl Exchange {
    /// Refuses a version that this server does not speak. An absent one is decided by the method or the path.
    pub fn check_version(&self) -> A2aResult<()> {
        match self.version.as_deref() {
            None | Some("" | "0.3" | "0.3.0" | "1.0" | "1.0.0") => Ok(()),
            Some(other) => {
                let shown: String = other.chars().take(20).collect();
                let message = format!("version {shown:?} is not supported; this server speaks 0.3 and 1.0");
                Err(A2aFailure::new(ErrorCode::VersionNotSupported, message))
            }
        }
    }

    /// The promise of an `Idempotency-Key`, for the request with this body.
    pub fn idempotency(&self, body: &[u8]) -> Option<Idempotency> {
        self.idempotency_key.clone().map(|key| Idempotency {
            key,
            fingerprint: repeatable::fingerprint(&Method::POST, &self.path, body),
            expires_at: Timestamp::now() + repeatable::REMEMBERED,
        })
    }

    /// The header that tells the client which extension is active.
    pub fn extension_header(&self, form: WireForm) -> Option<(HeaderName, HeaderValue)> {
        let name = match form {
            WireForm::V10 => HeaderName::from_static("a2a-extensions"),
            _ => HeaderName::from_static("x-a2a-extensions"),
        };
        self.extension.then(|| (name, HeaderValue::from_static(extension::URI)))
    }
}

/// A parameter of the path, percent-decoded.
pub async fn path_param(parts: &mut Parts, app: &App, name: &str) -> Option<String> {
    let params = RawPathParams::from_request_parts(parts, app).await.ok()?;
    params.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_owned())
}

/// The requested version, from the header or the query.
pub fn version(headers: &HeaderMap, uri: &Uri) -> Option<String> {
    let header = headers.get(VERSION).and_then(|value| value.to_str().ok());
    let query = || {
        let pairs = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
        pairs
            .into_iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(VERSION))
            .map(|(_, value)| value.into_owned())
    };
    header.map(|text| text.trim().to_owned()).or_else(query)
}

fn activates_extension(headers: &HeaderMap) -> bool {
    let names = [extension::HEADER_03, extension::HEADER_10];
    let values = names.iter().flat_map(|name| headers.get_all(*name)).filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|uri| uri.trim() == extension::URI)
}
