//! What every provider's call has in common: an address, a key, a refusal.

use std::sync::Arc;

use baton_core::{ModelError, ModelErrorKind, TraceParent};
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use http::{Request, Response, Uri};
use http_body_util::BodyExt as _;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use url::Url;

use crate::client::{ModelHttpClient, ResponseBody};
use crate::fault::{ModelFault, brief};
use crate::frames::Framing;
use crate::registry::{self, Endpoint};
use crate::retry_after::retry_after;

/// An error needs no more; what follows is not read.
const MAX_ERROR_BYTES: usize = 64 * 1024;

/// Lists of models can be long.
const MAX_JSON_BYTES: usize = 1024 * 1024;
/// Shorter keys are not masked in errors.
const MIN_SECRET_BYTES: usize = 8;

pub(crate) type ProviderCall = Request<Bytes>;

/// One provider as it can be called. Cheap to clone; its `Debug` shows no key.
#[derive(Debug, Clone)]
pub(crate) struct ProviderConnection(Arc<ProviderSpec>);

#[derive(Debug)]
struct ProviderSpec {
    name: String,
    base: Option<String>,
    key: Option<SecretString>,
    /// The header that carries the key, made once. The error is that of the first call.
    credential: Result<Option<(HeaderName, HeaderValue)>, ModelFault>,
    client: ModelHttpClient,
}

/// How a provider wants its key: as `header: {prefix}{key}`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeyHeader {
    pub header: &'static str,
    pub prefix: &'static str,
}

impl KeyHeader {
    pub const BEARER: Self = Self { header: "authorization", prefix: "Bearer " };

    pub const fn plain(header: &'static str) -> Self {
        Self { header, prefix: "" }
    }

    fn credential(self, key: &str) -> Result<(HeaderName, HeaderValue), ModelFault> {
        let mut value = HeaderValue::try_from(format!("{}{key}", self.prefix))
            .map_err(|_| ModelFault::new(ModelErrorKind::Auth, "its key holds characters that no key has"))?;
        value.set_sensitive(true);
        Ok((HeaderName::from_static(self.header), value))
    }
}

impl ProviderConnection {
    pub fn new(endpoint: Endpoint, client: ModelHttpClient, key_header: KeyHeader) -> Self {
        let default = registry::default_base(&endpoint.provider);
        let is_default = endpoint.base_url.as_deref().is_none_or(|base| Some(base) == default);
        let base = endpoint.base().map(str::to_owned);
        let needs_key = is_default && base.as_deref().is_some_and(|base| !is_loopback(base));
        // A key that was read from a file often ends with a line break.
        let key = endpoint.key.map(|key| SecretString::from(key.expose_secret().trim()));
        let key = key.filter(|key| !key.expose_secret().is_empty());
        let credential = match &key {
            Some(key) => key_header.credential(key.expose_secret()).map(Some),
            None if needs_key => {
                let variable = registry::key_variable(&endpoint.provider);
                let message = format!("no key: set the environment variable {variable}");
                Err(ModelFault::new(ModelErrorKind::Auth, message))
            }
            None => Ok(None),
        };
        Self(Arc::new(ProviderSpec { name: endpoint.provider, base, key, credential, client }))
    }

    pub fn provider(&self) -> &str {
        &self.0.name
    }

    /// The address as configured, or the provider's own.
    pub fn base(&self) -> &str {
        self.0.base.as_deref().unwrap_or_default()
    }

    /// The base address with a path below it and a query beside its own.
    pub fn address(&self, path: &[&str], query: Option<(&str, &str)>) -> Result<Uri, ModelFault> {
        let invalid = |message: String| ModelFault::new(ModelErrorKind::InvalidRequest, message);
        let Some(base) = self.0.base.as_deref() else {
            return Err(invalid(format!("`{}` has no known address; set its `base_url`", self.provider())));
        };
        let not_a_url =
            |error: &dyn std::fmt::Display| invalid(format!("its `base_url` is not a URL: {error}"));
        let mut url = Url::parse(base).map_err(|error| not_a_url(&error))?;
        // Base addresses are often given with a part of the path.
        let has: Vec<String> = url.path_segments().into_iter().flatten().map(str::to_owned).collect();
        let has: Vec<&str> = has.iter().map(String::as_str).filter(|segment| !segment.is_empty()).collect();
        let overlap = (0..=path.len()).rev().find(|&count| has.ends_with(&path[..count])).unwrap_or(0);
        match url.path_segments_mut() {
            Ok(mut segments) => segments.pop_if_empty().extend(&path[overlap..]),
            Err(()) => return Err(invalid("its `base_url` is not an http address".into())),
        };
        if let Some((name, value)) = query {
            url.query_pairs_mut().append_pair(name, value);
        }
        url.set_fragment(None);
        Uri::try_from(url.as_str()).map_err(|error| not_a_url(&error))
    }

    /// An address of the same server, outside of the `/v1` of its base address.
    pub fn server_address(&self, path: &[&str]) -> Option<Uri> {
        let mut url = Url::parse(self.base()).ok()?;
        let base = url.path().trim_end_matches('/');
        let root = base.strip_suffix("/v1").unwrap_or(base).to_owned();
        url.set_path(&format!("{root}/{}", path.join("/")));
        url.set_query(None);
        url.set_fragment(None);
        Uri::try_from(url.as_str()).ok()
    }

    /// A request that carries the key.
    pub fn post(&self, address: Uri, body: Vec<u8>) -> Result<ProviderCall, ModelFault> {
        self.request(Request::post(address), body)
    }

    /// A `GET` that carries the key.
    pub fn get(&self, address: Uri) -> Result<ProviderCall, ModelFault> {
        self.request(Request::get(address), Vec::new())
    }

    fn request(&self, builder: http::request::Builder, body: Vec<u8>) -> Result<ProviderCall, ModelFault> {
        let mut request = builder
            .body(Bytes::from(body))
            .map_err(|error| ModelFault::new(ModelErrorKind::InvalidRequest, error.to_string()))?;
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some((name, value)) = self.0.credential.clone()? {
            headers.insert(name, value);
        }
        Ok(request)
    }

    /// The JSON body of a successful response. At most [`MAX_JSON_BYTES`] are read.
    pub async fn fetch(&self, request: ProviderCall) -> Result<Value, ModelFault> {
        let response = self.0.client.send(request).await?;
        let status = response.status();
        let body = read_some(response.into_body(), MAX_JSON_BYTES).await;
        if !status.is_success() {
            return Err(ModelFault::from_body(Some(status.as_u16()), &body));
        }
        serde_json::from_str(&body).map_err(|error| ModelFault::not_json(&error))
    }

    /// Sends the request and returns an answer that can be read as frames.
    pub async fn open(
        &self,
        mut request: ProviderCall,
        framing: Framing,
    ) -> Result<Response<ResponseBody>, ModelFault> {
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static(framing.media_type()));
        let response = self.0.client.send(request).await?;
        let status = response.status();
        let media_type = media_type(response.headers());
        if status.is_success() && is_framed(media_type, framing) {
            return Ok(response);
        }
        let media_type = media_type.to_ascii_lowercase();
        let request_id = request_id(response.headers());
        let retry_after = retry_after(response.headers());
        let status = (!status.is_success()).then_some(status.as_u16());
        let body = read_some(response.into_body(), MAX_ERROR_BYTES).await;
        let mut fault = ModelFault::from_body(status, &body);
        if fault.kind == ModelErrorKind::Malformed {
            let expected = framing.media_type();
            fault.message = brief(&format!("expected {expected}, got `{media_type}`: {}", fault.message));
        }
        fault.retry_after = retry_after.or(fault.retry_after);
        Err(ModelFault { request_id, ..fault })
    }

    /// The only way from a fault to an error, so that a key which the provider quotes goes no further.
    pub fn report(&self, fault: ModelFault) -> ModelError {
        let ModelFault { kind, mut message, status, request_id, retry_after } = fault;
        // A short key, such as the `x` that some local servers want, is no secret and occurs in ordinary words.
        if let Some(key) = &self.0.key
            && key.expose_secret().len() >= MIN_SECRET_BYTES
        {
            message = message.replace(key.expose_secret(), "[key]");
        }
        ModelError { kind, provider: self.provider().to_owned(), message, status, request_id, retry_after }
    }
}

/// The request as part of a trace: a gateway or a server of one's own continues it, and others ignore it.
pub(crate) fn traced(mut request: ProviderCall, trace: Option<&TraceParent>) -> ProviderCall {
    let Some(trace) = trace else { return request };
    let headers =
        [("traceparent", Some(trace.to_string())), ("tracestate", trace.state().map(str::to_owned))];
    for (name, value) in headers {
        if let Some(value) = value.and_then(|value| HeaderValue::try_from(value).ok()) {
            request.headers_mut().insert(HeaderName::from_static(name), value);
        }
    }
    request
}

/// Whether an address is this machine's own.
pub(crate) fn is_loopback(base: &str) -> bool {
    let url = Url::parse(base).ok();
    url.as_ref().and_then(Url::host_str).is_some_and(|host| {
        let host = host.trim_matches(['[', ']']);
        host == "localhost" || host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
    })
}

/// What to quote to the provider's support.
pub(crate) fn request_id(headers: &HeaderMap) -> Option<String> {
    const NAMES: [&str; 4] = ["x-request-id", "request-id", "apim-request-id", "x-ms-request-id"];
    let value = NAMES.iter().find_map(|name| headers.get(*name))?;
    value.to_str().ok().map(|id| id.chars().take(200).collect())
}

fn media_type(headers: &HeaderMap) -> &str {
    let header = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    header.split(';').next().unwrap_or_default().trim()
}

/// Proxies lose the header; what they pass on is still what was asked for. Ollama-like servers name their lines in
/// several ways, and their errors are lines too.
fn is_framed(media_type: &str, framing: Framing) -> bool {
    media_type.is_empty()
        || media_type.eq_ignore_ascii_case("text/event-stream")
        || (framing == Framing::Ndjson && media_type.to_ascii_lowercase().contains("json"))
}

async fn read_some(mut body: ResponseBody, most: usize) -> String {
    let mut bytes = Vec::new();
    while let Some(Ok(frame)) = body.frame().await {
        let piece = frame.into_data().unwrap_or_default();
        let room = most - bytes.len();
        bytes.extend_from_slice(&piece[..piece.len().min(room)]);
        if bytes.len() == most {
            break;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
